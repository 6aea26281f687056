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

std::optional<Group> Group::Of(Emitter* e, const IOp& iop) {
  if (TextAttr(iop->attrs, "scope") != "group") return std::nullopt;
  Group group;
  group.e_ = e;
  group.size_ = iop->attrs.at("group_size").cast<int64_t>();
  group.units_ = e->plan.graph()->num_units;
  if (group.units_ % group.size_ != 0) {
    e->Refuse("A block's warps are no multiple of a group form's set.", "num_units % group_size == 0",
              std::to_string(group.units_) + " warps, sets of " + std::to_string(group.size_));
  }
  if (group.size_ == 1) return std::nullopt;
  group.buffer_ = iop->attrs.at("buffer").cast<ISlice>();
  if (Contiguous(*group.buffer_)) {
    group.base_ = e->names.Fresh("slots");
    e->out.Line("auto " + group.base_ + " = " + e->AddressOf(*group.buffer_).text + ";");
  }
  return group;
}

std::string Group::Member() const { return size_ == units_ ? "unit" : "unit % " + std::to_string(size_); }

std::string Group::Slot(const std::string& k) const {
  if (!base_.empty()) return base_ + "[" + k + "]";
  std::string cols = std::to_string((*buffer_)->cols);
  return "*(" + e_->Element(*buffer_, "((" + k + ") / " + cols + ")", "((" + k + ") % " + cols + ")") + ")";
}

void Group::Barrier() {
  int64_t sets = units_ / size_;
  if (sets == 1 || sets > kNamedBarriers) {
    e_->out.Line("__syncthreads();");
  } else {
    e_->needs.Intrinsic("named_barrier");
    e_->out.Line("named_barrier(1 + unit / " + std::to_string(size_) + ", " + std::to_string(size_ * kLanes) + ");");
  }
  e_->Met();
}

}  // namespace uir::codegen::cuda
