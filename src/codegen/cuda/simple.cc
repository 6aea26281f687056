// SPDX-License-Identifier: Apache-2.0
// fill, identity and sync.
#include <tvm/ffi/any.h>

#include "base/attrs.h"
#include "codegen/cuda/ops.h"

namespace uir::codegen::cuda {

void EmitFill(Emitter& e, const IOp& iop) {
  std::string literal = e.Literal(std::string(iop->dtype), iop->attrs.at("value"));
  Regs y = e.Target(iop->targets[0], e.plan.WorkLayout(iop));
  e.Each(y, {}, [&](const Cell& at) { e.Assign(y, at, literal); });
  e.Commit(iop->targets[0], y);
}

void EmitIdentity(Emitter& e, const IOp& iop) {
  // both sides are the same bytes of one pointer: its home is memory unless both are the same piece
}

void EmitSync(Emitter& e, const IOp& iop) {
  const std::string scope = TextAttr(iop->attrs, "scope");
  const IGraph& graph = e.plan.graph();
  if (scope == "dram") {
    if (!AttrOr(graph->attrs, "cooperative", false)) {
      e.Refuse("All units of the grid must meet within one kernel.",
               "one kernel for each phase, or a cooperative launch", "",
               "cut the graph at sync.dram, or set its attribute cooperative");
    }
    e.needs.Include("cooperative_groups.h");
    e.out.Line("cooperative_groups::this_grid().sync();");
  } else if (scope == "sram" && graph->num_units > 1) {
    e.BlockBarrier();
  } else {
    e.out.Line("__syncwarp();");
  }
  e.Met();
}

}  // namespace uir::codegen::cuda
