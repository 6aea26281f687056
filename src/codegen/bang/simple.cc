// SPDX-License-Identifier: Apache-2.0
// identity, which prints nothing, and sync.
#include <tvm/ffi/any.h>

#include "base/attrs.h"
#include "codegen/bang/ops.h"

namespace uir::codegen::bang {

void EmitIdentity(Emitter& e, const IOp& iop) {
  // both sides are the same bytes of one pointer
}

void EmitSync(Emitter& e, const IOp& iop) {
  const std::string scope = TextAttr(iop->attrs, "scope");
  if (scope == "dram") {
    e.Refuse("All clusters must meet within one kernel.", "one kernel for each phase", "",
             "cut the graph at sync.dram");
  }
  // what the pipes of one core must wait for, the planner of syncs finds
  if (scope == "sram" && e.plan().graph()->num_units > 1) e.MeetCluster();
}

}  // namespace uir::codegen::bang
