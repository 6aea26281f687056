// SPDX-License-Identifier: Apache-2.0
/*!
 * \file simple.cc
 * \brief identity and sync, which print nothing.
 */
#include <tvm/ffi/any.h>

#include "ops.h"

namespace uir {
namespace codegen {
namespace ascend {

void EmitIdentity(Emitter& e, const IOp& iop) {
  // both sides are the same bytes of one pointer
}

void EmitSync(Emitter& e, const IOp& iop) {
  std::string scope(iop->attrs.at("scope").cast<ffi::String>());
  if (scope == "dram") {
    e.Refuse("All cores must meet within one kernel.", "one kernel for each phase", "", "cut the graph at sync.dram");
  }
  // a core is a unit of its own: what its pipes must wait for, the planner of syncs finds
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
