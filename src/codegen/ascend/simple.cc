// SPDX-License-Identifier: Apache-2.0
// identity and sync, which print nothing.
#include <tvm/ffi/any.h>

#include "base/attrs.h"
#include "codegen/ascend/ops.h"

namespace uir::codegen::ascend {

void EmitIdentity(Emitter& e, const IOp& iop) {
  // both sides are the same bytes of one pointer
}

void EmitSync(Emitter& e, const IOp& iop) {
  const std::string scope = TextAttr(iop->attrs, "scope");
  if (scope == "dram") {
    e.Refuse("All cores must meet within one kernel.", "one kernel for each phase", "", "cut the graph at sync.dram");
  }
  // a core is a unit of its own: what its pipes must wait for, the planner of syncs finds
}

}  // namespace uir::codegen::ascend
