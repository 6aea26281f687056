// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/group.h"

#include <tvm/ffi/any.h>

#include "base/attrs.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief A block has the barriers 0 to 15, of which 0 is `__syncthreads`. */
constexpr int64_t kNamedBarriers = 15;

/*! \brief Whether the slice's elements follow each other without a gap. */
bool Contiguous(const ISlice& slice) {
  bool within = slice->cols == 1 || slice->col_stride == 1;
  bool rows = slice->rows == 1 || slice->row_stride == slice->cols;
  return within && rows;
}

}  // namespace

std::optional<GroupPlan> GroupPlan::Of(const StepPlanner& p, const IOp& iop) {
  if (TextAttr(iop->attrs, "scope") != "group") return std::nullopt;
  const auto size = iop->attrs.at("group_size").cast<int64_t>();
  const int64_t units = p.plan.graph()->num_units;
  if (units % size != 0) {
    p.Refuse("A block's warps are no multiple of a group form's set.", "num_units % group_size == 0",
             std::to_string(units) + " warps, sets of " + std::to_string(size));
  }
  if (size == 1) return std::nullopt;
  const auto buffer = iop->attrs.at("buffer").cast<ISlice>();
  const int64_t sets = units / size;
  return GroupPlan{size, units, buffer, Contiguous(buffer), sets > 1 && sets <= kNamedBarriers};
}

Group::Group(Emitter* e, const GroupPlan& plan) : e_(e), plan_(plan) {
  if (!plan.contiguous) return;
  base_ = e->names.Fresh("slots");
  e->out.Line("auto " + base_ + " = " + e->AddressOf(plan.buffer).text + ";");
}

std::string Group::Member() const {
  return plan_.size == plan_.units ? "unit" : "unit % " + std::to_string(plan_.size);
}

std::string Group::Slot(const std::string& k) const {
  if (!base_.empty()) return base_ + "[" + k + "]";
  std::string cols = std::to_string(plan_.buffer->cols);
  return "*(" + e_->Element(plan_.buffer, "((" + k + ") / " + cols + ")", "((" + k + ") % " + cols + ")") + ")";
}

void Group::Barrier() const {
  if (!plan_.named) return e_->out.Line("__syncthreads();");
  e_->needs.Intrinsic("named_barrier");
  e_->out.Line("named_barrier(1 + unit / " + std::to_string(plan_.size) + ", " + std::to_string(plan_.size * kLanes) +
               ");");
}

}  // namespace uir::codegen::cuda
