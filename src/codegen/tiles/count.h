// SPDX-License-Identifier: Apache-2.0
/*!
 * \file count.h
 * \brief Counting the iOps of a body.
 */
#ifndef UIR_CODEGEN_TILES_COUNT_H_
#define UIR_CODEGEN_TILES_COUNT_H_

#include <tvm/ffi/any.h>

#include "../../igraph/nodes.h"

namespace uir {
namespace codegen {
namespace tiles {

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

}  // namespace tiles
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_TILES_COUNT_H_
