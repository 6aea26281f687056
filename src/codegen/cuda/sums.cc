// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/sums.h"

#include "codegen/attributes.h"

namespace uir::codegen::cuda {

ProductSums::ProductSums(Emitter& e, const IOp& iop, const MmaRow& row)
    : e_(e), iop_(iop), row_(row), layout_(SumsLayout(iop)) {
  const ISlice& target = iop_->targets[0];
  const bool accumulate = Accumulates(iop);
  const Home& home = e_.plan.HomeOf(target);
  const Fragment fragment(layout_, target->rows, target->cols);
  e_.needs.Dtype(std::string(target->pointer->dtype));
  const bool same = home.registers() && home.fragment.layout == layout_;
  direct_ = same && std::string(target->pointer->dtype) == row_.sum && !e_.plan.SparesOutside(target);
  if (direct_) {
    sums_ = e_.Target(target, layout_);
    if (!accumulate) Zero();
    return;
  }
  std::optional<Regs> old;
  if (accumulate) old = e_.Source(target, layout_);
  sums_ = e_.Temporary("sums", row_.sum, fragment);
  if (!old) {
    Zero();
    return;
  }
  const ScalarType& type = TypeOf(old->dtype);
  e_.Each(sums_, {&*old}, [&](const Cell& at) { e_.Assign(sums_, at, Widen(type, (*old)[at])); });
}

void ProductSums::Zero() {
  e_.Each(sums_, {}, [&](const Cell& at) { e_.Assign(sums_, at, StoredLiteral(TypeOf(row_.sum), 0.0)); });
}

void ProductSums::Finish() {
  const ISlice& target = iop_->targets[0];
  if (direct_) {
    e_.Commit(target, sums_);
    return;
  }
  const ScalarType& type = TypeOf(std::string(target->pointer->dtype));
  Regs out = e_.Target(target, layout_);
  Coordinates need;
  if (out.spare) need = e_.InsideNeeds(out.fragment, *out.spare);
  e_.Each(out, {&sums_}, [&](const Cell& at) { e_.Assign(out, at, Narrow(type, sums_[at])); }, need);
  e_.Commit(target, out);
}

}  // namespace uir::codegen::cuda
