// SPDX-License-Identifier: Apache-2.0
// fill, identity and sync.
#include <tvm/ffi/any.h>

#include "base/attrs.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

class FillStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final {
    std::string literal = e.Literal(std::string(iop->dtype), iop->attrs.at("value"));
    Regs y = e.Target(target);
    e.Each(y, {}, [&](const Cell& at) { e.Assign(y, at, literal); });
    e.Commit(target, y);
  }

  Operand target;
};

//! \brief Nothing to print.
//! Both sides are the same bytes of one pointer: its home is memory unless both are the same piece.
class IdentityStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter&) const final {}
};

class SyncStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final {
    switch (meets) {
      case Meets::kWarp:
        return e.WarpBarrier();
      case Meets::kBlock:
        return e.BlockBarrier();
      case Meets::kGrid:
        e.needs.Include("cooperative_groups.h");
        return e.out.Line("cooperative_groups::this_grid().sync();");
    }
  }

  enum class Meets { kWarp, kBlock, kGrid };
  Meets meets = Meets::kWarp;
};

}  // namespace

StepPtr PlanFill(StepPlanner& p, const IOp& iop) {
  auto step = std::make_unique<FillStep>(iop);
  step->target = p.Target(iop->targets[0], p.plan.WorkLayout(iop));
  p.Commit(&step->target);
  return step;
}

StepPtr PlanIdentity(StepPlanner&, const IOp& iop) { return std::make_unique<IdentityStep>(iop); }

StepPtr PlanSync(StepPlanner& p, const IOp& iop) {
  auto step = std::make_unique<SyncStep>(iop);
  const std::string scope = TextAttr(iop->attrs, "scope");
  const IGraph& graph = p.plan.graph();
  if (scope == "dram") {
    if (!AttrOr(graph->attrs, "cooperative", false)) {
      p.Refuse("All units of the grid must meet within one kernel.",
               "one kernel for each phase, or a cooperative launch", "",
               "cut the graph at sync.dram, or set its attribute cooperative");
    }
    step->meets = SyncStep::Meets::kGrid;
  } else if (scope == "sram" && graph->num_units > 1) {
    step->meets = SyncStep::Meets::kBlock;
  }
  p.Met();
  return step;
}

}  // namespace uir::codegen::cuda
