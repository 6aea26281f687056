// SPDX-License-Identifier: Apache-2.0
// move: between memory and registers, within either, and with padding.
#include <tvm/ffi/any.h>

#include "codegen/attributes.h"
#include "codegen/cuda/ops.h"

namespace uir::codegen::cuda {

namespace {

bool Bounded(const ISlice& slice) { return slice->row_begin || slice->row_end || slice->col_begin || slice->col_end; }

/*! \brief How often the kernel's units together move as many elements as a dram pointer has. */
double TimesOver(const Emitter& e, const ISlice& slice, const IOp& iop) {
  double moved = 0;
  for (const Use& use : e.uses()) {
    if (use.pointer() != std::string(slice->pointer->name)) continue;
    moved += use.times() * static_cast<double>(use.slice->rows * use.slice->cols);
  }
  const IGraph& graph = e.plan.graph();
  return moved * static_cast<double>(graph->num_groups * graph->num_units) / static_cast<double>(slice->pointer->size);
}

/*! \brief Streams what is said to be streamed, and what is moved once and is too large to find in the cache later. */
bool Streams(const Emitter& e, const ISlice& slice, const IOp& iop) {
  if (slice->pointer->level != "dram") return false;
  if (AttrOr(iop->attrs, "hint", std::string()) == "stream") return true;
  const ffi::Any l2 = AttrOf(e.plan.graph()->hardware->figures, "l2_bytes");
  if (l2 == nullptr) return false;
  double bytes = static_cast<double>(slice->pointer->size) * TypeOf(std::string(slice->pointer->dtype)).bytes;
  // a tail may make the tiles reach a little over the end
  constexpr double kOnce = 1.25;
  return bytes > static_cast<double>(l2.cast<int64_t>()) && TimesOver(e, slice, iop) <= kOnce;
}

Transfer HowOf(const Emitter& e, const ISlice& slice, const IOp& iop) {
  Transfer how;
  how.align = StatedAlign(iop);
  how.stream = Streams(e, slice, iop);
  return how;
}

}  // namespace

void EmitMove(Emitter& e, const IOp& iop) {
  const ISlice target = iop->targets[0], source = iop->sources[0];
  const Home &to = e.plan.HomeOf(target), &from = e.plan.HomeOf(source);
  Layout layout = e.plan.WorkLayout(iop);
  const std::optional<ffi::Any> pad = PadOf(iop);
  std::string outside = e.Literal(std::string(iop->dtype), pad.value_or(ffi::Any(int64_t{0})));
  Transfer reading = HowOf(e, source, iop);
  reading.within = target;
  bool by_value = from.registers();
  auto loaded = [&] {
    if (by_value) return e.Source(source, layout);
    Fragment fragment(layout, source->rows, source->cols);
    Regs x = e.Temporary(std::string(source->pointer->name) + "_in", std::string(iop->dtype), fragment);
    e.Load(x, source, outside, reading);
    return x;
  };
  bool masked = pad && by_value && Bounded(source);
  if (!to.registers() && !masked) {
    e.Store(target, loaded(), HowOf(e, target, iop));
    return;
  }
  Regs y = e.Target(target, layout);
  if (!by_value && (!y.spare || !pad)) {
    // what another move has put beside it stays
    e.Load(y, source, y.spare ? "" : outside, reading);
  } else {
    Regs x = loaded();
    Box box = masked ? e.BoxOf(source) : Box();
    auto assign = [&](const Cell& at) {
      std::string inside = masked ? e.Inside(x.fragment, box, at) : "";
      e.Assign(y, at, inside.empty() ? x[at] : inside + " ? " + x[at] + " : " + outside);
    };
    e.Each(y, {&x}, assign, masked ? e.InsideNeeds(x.fragment, box) : Coordinates());
  }
  e.Commit(target, y);
}

}  // namespace uir::codegen::cuda
