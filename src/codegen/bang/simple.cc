// SPDX-License-Identifier: Apache-2.0
/*!
 * \file simple.cc
 * \brief identity, which prints nothing, and sync.
 */
#include <tvm/ffi/any.h>

#include "ops.h"

namespace uir {
namespace codegen {
namespace bang {

void EmitIdentity(Emitter& e, const IOp& iop) {
  // both sides are the same bytes of one pointer
}

void EmitSync(Emitter& e, const IOp& iop) {
  std::string scope(iop->attrs.at("scope").cast<ffi::String>());
  if (scope == "dram") {
    e.Refuse("All clusters must meet within one kernel.", "one kernel for each phase", "",
             "cut the graph at sync.dram");
  }
  // what the pipes of one core must wait for, the planner of syncs finds
  if (scope == "sram" && e.plan().graph()->num_units > 1) e.MeetCluster();
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
