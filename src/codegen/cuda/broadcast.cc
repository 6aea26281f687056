// SPDX-License-Identifier: Apache-2.0
// broadcast: a column (row) of registers is in every lane that needs it; a set's goes through its buffer.
#include <tvm/ffi/any.h>

#include "codegen/attributes.h"
#include "codegen/cuda/group.h"
#include "codegen/cuda/loops.h"
#include "codegen/cuda/ops.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief The first warp's source to the buffer. */
void Publish(Emitter& e, const IOp& iop, const Layout& layout, const Group& group, bool by_row) {
  const ISlice source = iop->sources[0];
  Box box = e.BoxOf(source);
  Loops loops(&e);
  loops.OpenBlock("if (" + group.Member() + " == 0)");
  Regs x;
  e.OnlySome([&] { x = e.Source(source, layout); });
  Place none;
  none.coordinate = "0";
  Place at = loops.Side(x.fragment, by_row, true);
  Cell cell = by_row ? CellOf(at, none) : CellOf(none, at);
  std::string condition = e.Inside(x.fragment, box, cell), copies = e.OneOfCopies(x.fragment);
  if (!copies.empty()) condition += (condition.empty() ? "" : " && ") + copies;
  e.out.Line((condition.empty() ? "" : "if (" + condition + ") ") + group.Slot(at.coordinate) + " = " + x[cell] + ";");
  loops.Close();
}

/*! \brief What the buffer holds, in registers of every warp. */
Regs Received(Emitter& e, const IOp& iop, const Layout& layout, const Group& group, bool by_row) {
  const ISlice target = iop->targets[0], source = iop->sources[0];
  Box box = e.BoxOf(target);
  Regs x = e.Temporary(std::string(source->pointer->name) + "_of_set", std::string(iop->dtype),
                       Fragment(layout, source->rows, source->cols));
  (by_row ? box.col_begin : box.row_begin).reset();
  (by_row ? box.col_end : box.row_end).reset();
  Loops loops(&e);
  Place none;
  none.coordinate = "0";
  Place at = loops.Side(x.fragment, by_row, true);
  Cell cell = by_row ? CellOf(at, none) : CellOf(none, at);
  std::string inside = e.Inside(x.fragment, box, cell), value = group.Slot(at.coordinate);
  std::string zero = StoredLiteral(TypeOf(std::string(iop->dtype)), int64_t{0});
  for (const std::string& key : ConversionHelpers(TypeOf(std::string(iop->dtype)))) e.needs.Helper(key);
  e.out.Line(x[cell] + " = " + (inside.empty() ? value : inside + " ? " + value + " : " + zero) + ";");
  loops.Close();
  return x;
}

}  // namespace

void EmitBroadcast(Emitter& e, const IOp& iop) {
  Layout layout = e.plan.WorkLayout(iop);
  bool by_row = IsByRow(iop);
  std::optional<Group> group = Group::Of(&e, iop);
  Regs x;
  if (group) {
    const ISlice buffer = iop->attrs.at("buffer").cast<ISlice>();
    e.Writes(buffer);
    Publish(e, iop, layout, *group, by_row);
    group->Barrier();
    e.Reads(buffer);
    x = Received(e, iop, layout, *group, by_row);
  } else {
    x = e.Source(iop->sources[0], layout);
  }
  Regs y = e.Target(iop->targets[0], layout);
  e.Each(y, {&x}, [&](const Cell& at) { e.Assign(y, at, x[at]); });
  e.Commit(iop->targets[0], y);
}

}  // namespace uir::codegen::cuda
