// SPDX-License-Identifier: Apache-2.0
// move: between memory and registers, within either, and with padding.
#include <tvm/ffi/any.h>

#include "codegen/attributes.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

bool Bounded(const ISlice& slice) { return slice->row_begin || slice->row_end || slice->col_begin || slice->col_end; }

/*! \brief How often the kernel's units together move as many elements as a dram pointer has. */
double TimesOver(const StepPlanner& p, const ISlice& slice) {
  double moved = 0;
  for (const Use& use : p.uses) {
    if (use.pointer() != std::string(slice->pointer->name)) continue;
    moved += use.times() * static_cast<double>(use.slice->rows * use.slice->cols);
  }
  const IGraph& graph = p.plan.graph();
  return moved * static_cast<double>(graph->num_groups * graph->num_units) / static_cast<double>(slice->pointer->size);
}

/*! \brief Streams what is said to be streamed, and what is moved once and is too large to find in the cache later. */
bool Streams(const StepPlanner& p, const ISlice& slice, const IOp& iop) {
  if (slice->pointer->level != "dram") return false;
  if (AttrOr(iop->attrs, "hint", std::string()) == "stream") return true;
  // what sizes decide may be small where it runs
  if (!slice->pointer->dims.empty()) return false;
  const ffi::Any l2 = AttrOf(p.plan.graph()->hardware->figures, "l2_bytes");
  if (l2 == nullptr) return false;
  double bytes = static_cast<double>(slice->pointer->size) * TypeOf(std::string(slice->pointer->dtype)).bytes;
  // a tail may make the tiles reach a little over the end
  constexpr double kOnce = 1.25;
  return bytes > static_cast<double>(l2.cast<int64_t>()) && TimesOver(p, slice) <= kOnce;
}

MoveHint HintOf(const StepPlanner& p, const ISlice& slice, const IOp& iop) {
  return {Streams(p, slice, iop), StatedAlign(iop)};
}

/*! \brief A move: by what way its elements come, and where what lies outside of a box is put in. */
class MoveStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  enum class Way {
    kThrough,  // from the source, as it comes into registers, to the target in memory
    kLoaded,   // from memory to the target's registers
    kEach,     // register by register
  };
  Way way = Way::kEach;
  Operand source, target;
  /*! \brief kLoaded. */
  std::optional<Transfer> load;
  /*! \brief Whether what lies outside of the source's box is replaced register by register. */
  bool masked = false;
};

void MoveStep::Print(Emitter& e) const {
  const ffi::Any pad = PadOf(iop).value_or(ffi::Any(int64_t{0}));
  const std::string outside = e.Literal(std::string(iop->dtype), pad);
  if (way == Way::kThrough) return e.Store(*target.transfer, e.Source(source, outside));
  Regs y = e.Target(target);
  if (way == Way::kLoaded) {
    // what another move has put beside it stays
    e.Load(*load, y, y.spare ? "" : outside);
  } else {
    Regs x = e.Source(source, outside);
    Box box = masked ? e.BoxOf(source.slice) : Box();
    auto assign = [&](const Cell& at) {
      std::string inside = masked ? e.Inside(x.fragment, box, at) : "";
      e.Assign(y, at, inside.empty() ? x[at] : inside + " ? " + x[at] + " : " + outside);
    };
    e.Each(y, {&x}, assign, masked ? e.InsideNeeds(x.fragment, box) : Coordinates());
  }
  e.Commit(target, y);
}

}  // namespace

StepPtr PlanMove(StepPlanner& p, const IOp& iop) {
  const ISlice target = iop->targets[0], source = iop->sources[0];
  const Layout layout = p.plan.WorkLayout(iop);
  const bool by_value = p.plan.HomeOf(source).registers(), padded = PadOf(iop).has_value();
  auto step = std::make_unique<MoveStep>(iop);
  step->masked = padded && by_value && Bounded(source);
  MoveHint reading = HintOf(p, source, iop);
  reading.within = target;
  step->target = p.Target(target, layout);
  if (step->target.way == Operand::Way::kMoved && !step->masked) {
    step->way = MoveStep::Way::kThrough;
    step->source = p.Source(source, layout, reading);
    step->target.transfer = p.Store(target, step->source.fragment, HintOf(p, target, iop));
    return step;
  }
  if (!by_value && (!step->target.spares_in_place() || !padded)) {
    step->way = MoveStep::Way::kLoaded;
    step->load = p.Load(source, step->target.fragment, reading);
  } else {
    step->source = p.Source(source, layout, reading);
  }
  p.Commit(&step->target);
  return step;
}

}  // namespace uir::codegen::cuda
