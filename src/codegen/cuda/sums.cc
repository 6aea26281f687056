// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/sums.h"

#include "codegen/attributes.h"

namespace uir::codegen::cuda {

SumsPlan SumsPlan::Of(StepPlanner& p, const IOp& iop, const std::string& dtype, const Layout& layout, bool fits) {
  const ISlice& target = iop->targets[0];
  SumsPlan out;
  out.dtype = dtype;
  out.direct = fits && p.plan.HomeOf(target).registers() && !p.plan.SparesOutside(target);
  if (!out.direct && Accumulates(iop)) out.old = p.Source(target, layout);
  out.target = p.Target(target, layout);
  out.accumulates = Accumulates(iop);
  return out;
}

SumsPlan SumsPlan::OfInstruction(StepPlanner& p, const IOp& iop, const MmaRow& row) {
  const ISlice& target = iop->targets[0];
  const Layout layout = SumsLayout(iop);
  const bool same = p.plan.HomeOf(target).fragment.layout == layout;
  return Of(p, iop, row.sum, layout, same && std::string(target->pointer->dtype) == row.sum);
}

ProductSums::ProductSums(Emitter& e, const SumsPlan& plan)
    : e_(e), plan_(plan), type_(TypeOf(std::string(plan.target.slice->pointer->dtype))) {
  e_.needs.Dtype(type_.name);
  if (plan_.direct) {
    sums_ = e_.Target(plan_.target);
    if (!plan_.accumulates) Zero();
    return;
  }
  std::optional<Regs> old;
  if (plan_.old) old = e_.Source(*plan_.old);
  sums_ = e_.Temporary("sums", plan_.dtype, plan_.target.fragment);
  if (old) {
    e_.Each(sums_, {&*old}, [&](const Cell& at) { e_.Assign(sums_, at, Widen(type_, (*old)[at])); });
  } else {
    Zero();
  }
}

void ProductSums::Zero() {
  const std::string zero = StoredLiteral(TypeOf(sums_.dtype), int64_t{0});
  e_.Each(sums_, {}, [&](const Cell& at) { e_.Assign(sums_, at, zero); });
}

void ProductSums::Finish() {
  if (plan_.direct) return;
  Regs out = e_.Target(plan_.target);
  Coordinates need;
  if (out.spare) need = e_.InsideNeeds(out.fragment, *out.spare);
  e_.Each(out, {&sums_}, [&](const Cell& at) { e_.Assign(out, at, Narrow(type_, sums_[at])); }, need);
  e_.Commit(plan_.target, out);
}

}  // namespace uir::codegen::cuda
