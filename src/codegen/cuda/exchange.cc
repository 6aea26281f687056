// SPDX-License-Identifier: Apache-2.0
// transpose: memory is read or written with rows and columns exchanged; registers are renamed and converted.
#include <optional>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/piece.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief The layout in which every lane holds what it holds, once rows are called columns. */
Layout TurnedLayout(const Layout& l) { return {l.lanes_c, l.lanes_r, l.vec_c, l.vec_r, !l.lanes_col_major}; }

/*! \brief The lane's registers in the order of the turned layout: a change of names, which costs nothing. */
Regs Renamed(Emitter& e, const Regs& x) {
  const Fragment& f = x.fragment;
  Regs out = e.Temporary(x.name + "_turned", x.dtype, Fragment(TurnedLayout(f.layout), f.cols, f.rows));
  // never a flat loop: the registers' order differs
  Regs apart = x;
  apart.array_blocks_c = -1;
  e.Each(x, {&apart}, [&](const Cell& at) {
    e.out.Line(out.At(at.block_c, at.block_r, at.c, at.r) + " = " + x.At(at.block_r, at.block_c, at.r, at.c) + ";");
  });
  return out;
}

/*! \brief A transpose, by where its sides lie. */
class TransposeStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  enum class Way {
    kStored,   // to memory with rows and columns exchanged
    kLoaded,   // from memory with rows and columns exchanged
    kRenamed,  // within registers
  };
  Way way = Way::kRenamed;
  Operand source, target;
  /*! \brief kStored, kLoaded. */
  std::optional<Transfer> transfer;
  /*! \brief kRenamed: to the target's layout, where the renamed registers have another. */
  std::optional<Conversion> conversion;
};

void TransposeStep::Print(Emitter& e) const {
  if (way == Way::kStored) return e.Store(*transfer, e.Source(source));
  Regs y = e.Target(target);
  Regs x;
  if (way == Way::kLoaded) {
    x = y.spare ? e.Temporary(y.name + "_in", y.dtype, y.fragment) : y;
    e.Load(*transfer, x, StoredLiteral(TypeOf(y.dtype), int64_t{0}));
  } else {
    x = Renamed(e, e.Source(source));
    if (conversion) {
      Regs converted = y.spare ? e.Temporary(x.name + "_as", x.dtype, y.fragment) : y;
      e.Convert(*conversion, converted, x);
      x = converted;
    }
  }
  if (x.name != y.name) e.Each(y, {&x}, [&](const Cell& at) { e.Assign(y, at, x[at]); });
  e.Commit(target, y);
}

}  // namespace

StepPtr PlanTranspose(StepPlanner& p, const IOp& iop) {
  const ISlice target = iop->targets[0], source = iop->sources[0];
  const Home &from = p.plan.HomeOf(source), &to = p.plan.HomeOf(target);
  auto step = std::make_unique<TransposeStep>(iop);
  if (!to.registers()) {
    step->way = TransposeStep::Way::kStored;
    step->source = p.Source(source, from.registers() ? from.fragment.layout : TurnedLayout(p.plan.WorkLayout(iop)));
    step->transfer = p.Store(Turned(target), step->source.fragment);
    return step;
  }
  step->target = p.Target(target, to.fragment.layout);
  const Fragment& y = step->target.fragment;
  if (from.registers()) {
    step->source = p.Source(source, from.fragment.layout);
    const Fragment& f = step->source.fragment;
    const Fragment x(TurnedLayout(f.layout), f.cols, f.rows);
    if (!SameHolding(x, y)) step->conversion = p.Convert(y, x, std::string(target->pointer->dtype));
  } else {
    step->way = TransposeStep::Way::kLoaded;
    step->transfer = p.Load(Turned(source), y);
  }
  p.Commit(&step->target);
  return step;
}

}  // namespace uir::codegen::cuda
