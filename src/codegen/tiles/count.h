// SPDX-License-Identifier: Apache-2.0
// Counting the iOps of a body.
#pragma once

#include <tvm/ffi/any.h>

#include "igraph/nodes.h"

namespace uir::codegen::tiles {

/*! \brief How many iOps in a body, those of inner loops included, something holds of. */
template <typename Holds>
int CountIOps(const ffi::Array<ffi::ObjectRef>& body, const Holds& holds) {
  int count = 0;
  for (const ffi::ObjectRef& node : body) {
    if (auto loop = node.as<Loop>()) {
      count += CountIOps((*loop)->body, holds);
    } else {
      count += holds(node.as_or_throw<IOp>()) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace uir::codegen::tiles
