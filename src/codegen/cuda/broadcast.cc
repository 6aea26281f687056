// SPDX-License-Identifier: Apache-2.0
// broadcast: a column (row) of registers is in every lane that needs it; a set's goes through its buffer.
#include <tvm/ffi/any.h>

#include "codegen/attributes.h"
#include "codegen/cuda/group.h"
#include "codegen/cuda/loops.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief A broadcast; the source of a group form is that of the set's first warp. */
class BroadcastStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  bool by_row = true;
  std::optional<GroupPlan> group;
  Operand source, target;
  /*! \brief Of a group form: the registers of every warp to which the buffer comes. */
  Fragment received;

 private:
  void Publish(Emitter& e, const Group& set) const;
  Regs Received(Emitter& e, const Group& set) const;
};

/*! \brief The first warp's source to the buffer. */
void BroadcastStep::Publish(Emitter& e, const Group& set) const {
  Box box = e.BoxOf(source.slice);
  Loops loops(&e);
  loops.OpenBlock("if (" + set.Member() + " == 0)");
  Regs x = e.Source(source);
  Place none;
  none.coordinate = "0";
  Place at = loops.Side(x.fragment, by_row, true);
  Cell cell = by_row ? CellOf(at, none) : CellOf(none, at);
  std::string condition = e.Inside(x.fragment, box, cell), copies = e.OneOfCopies(x.fragment);
  if (!copies.empty()) condition += (condition.empty() ? "" : " && ") + copies;
  e.out.Line((condition.empty() ? "" : "if (" + condition + ") ") + set.Slot(at.coordinate) + " = " + x[cell] + ";");
  loops.Close();
}

/*! \brief What the buffer holds, in registers of every warp. */
Regs BroadcastStep::Received(Emitter& e, const Group& set) const {
  Box box = e.BoxOf(target.slice);
  Regs x = e.Temporary(std::string(source.slice->pointer->name) + "_of_set", std::string(iop->dtype), received);
  (by_row ? box.col_begin : box.row_begin).reset();
  (by_row ? box.col_end : box.row_end).reset();
  Loops loops(&e);
  Place none;
  none.coordinate = "0";
  Place at = loops.Side(x.fragment, by_row, true);
  Cell cell = by_row ? CellOf(at, none) : CellOf(none, at);
  std::string inside = e.Inside(x.fragment, box, cell), value = set.Slot(at.coordinate);
  std::string zero = StoredLiteral(TypeOf(std::string(iop->dtype)), int64_t{0});
  for (const std::string& key : ConversionHelpers(TypeOf(std::string(iop->dtype)))) e.needs.Helper(key);
  e.out.Line(x[cell] + " = " + (inside.empty() ? value : inside + " ? " + value + " : " + zero) + ";");
  loops.Close();
  return x;
}

void BroadcastStep::Print(Emitter& e) const {
  Regs x;
  if (group) {
    const Group set(&e, *group);
    e.Meet(group->written);
    Publish(e, set);
    set.Barrier();
    e.Meet(group->read);
    x = Received(e, set);
  } else {
    x = e.Source(source);
  }
  Regs y = e.Target(target);
  e.Each(y, {&x}, [&](const Cell& at) { e.Assign(y, at, x[at]); });
  e.Commit(target, y);
}

}  // namespace

StepPtr PlanBroadcast(StepPlanner& p, const IOp& iop) {
  auto step = std::make_unique<BroadcastStep>(iop);
  const ISlice source = iop->sources[0];
  const Layout layout = p.plan.WorkLayout(iop);
  step->by_row = IsByRow(iop);
  step->group = GroupPlan::Of(p, iop);
  if (step->group) {
    step->group->written = p.Writes(step->group->buffer);
    p.OnlySome([&] { step->source = p.Source(source, layout); });
    p.Met();
    step->group->read = p.Reads(step->group->buffer);
    step->received = Fragment(layout, source->rows, source->cols);
  } else {
    step->source = p.Source(source, layout);
  }
  step->target = p.Target(iop->targets[0], layout);
  p.Commit(&step->target);
  return step;
}

}  // namespace uir::codegen::cuda
