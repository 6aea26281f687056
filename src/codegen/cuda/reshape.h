// SPDX-License-Identifier: Apache-2.0
// Moves and fills in the shape in which the rest of a kernel uses a reg pointer.
//
//     move t[0; (1,512); (512,1)], x[512*pid; (1,512); (512,1)]; reduce.add.row s, t[0; (4,128); (128,1)]
//  -> move t[0; (4,128); (128,1)], x[512*pid; (4,128); (128,1)]; reduce.add.row s, t[0; (4,128); (128,1)]
//
// A device with linear registers moves best along one long row.  Here a move of another shape than the value's
// would have to go through shared memory, and nothing is gained by it: lanes take 16 bytes of either shape.
#pragma once

#include "igraph/nodes.h"

namespace uir::codegen::cuda {

/*! \brief The graph with reshaped moves; itself where there is none to reshape. */
IGraph ReshapeMoves(const IGraph& graph);

}  // namespace uir::codegen::cuda
