// SPDX-License-Identifier: Apache-2.0
// transpose: memory is read or written with rows and columns exchanged; registers are renamed and converted.
#include "codegen/cuda/ops.h"
#include "codegen/cuda/piece.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief The layout in which every lane holds what it holds, once rows are called columns. */
Layout Turned(const Layout& l) { return {l.lanes_c, l.lanes_r, l.vec_c, l.vec_r, !l.lanes_col_major}; }

/*! \brief The lane's registers in the order of the turned layout: a change of names, which costs nothing. */
Regs Renamed(Emitter& e, const Regs& x) {
  const Fragment& f = x.fragment;
  Regs out = e.Temporary(x.name + "_turned", x.dtype, Fragment(Turned(f.layout), f.cols, f.rows));
  // never a flat loop: the registers' order differs
  Regs apart = x;
  apart.array_blocks_c = -1;
  e.Each(x, {&apart}, [&](const Cell& at) {
    e.out.Line(out.At(at.block_c, at.block_r, at.c, at.r) + " = " + x.At(at.block_r, at.block_c, at.r, at.c) + ";");
  });
  return out;
}

}  // namespace

void EmitTranspose(Emitter& e, const IOp& iop) {
  const ISlice target = iop->targets[0];
  ISlice source = iop->sources[0];
  const Home &from = e.plan.HomeOf(source), &to = e.plan.HomeOf(target);
  if (!to.registers()) {
    Layout layout = from.registers() ? from.fragment.layout : Turned(e.plan.WorkLayout(iop));
    e.Store(Turned(target), e.Source(source, layout));
    return;
  }
  Regs y = e.Target(target, to.fragment.layout);
  Regs x;
  if (from.registers()) {
    x = Renamed(e, e.Source(source, from.fragment.layout));
  } else {
    x = y.spare ? e.Temporary(y.name + "_in", y.dtype, y.fragment) : y;
    e.Load(x, Turned(source), StoredLiteral(TypeOf(y.dtype), int64_t{0}));
  }
  if (x.name != y.name) {
    if (!SameHolding(x.fragment, y.fragment)) {
      Regs converted = y.spare ? e.Temporary(x.name + "_as", x.dtype, y.fragment) : y;
      e.Convert(converted, x);
      x = converted;
    }
    if (x.name != y.name) e.Each(y, {&x}, [&](const Cell& at) { e.Assign(y, at, x[at]); });
  }
  e.Commit(target, y);
}

}  // namespace uir::codegen::cuda
