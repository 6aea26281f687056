// SPDX-License-Identifier: Apache-2.0
// Layouts that a graph asks for by name, against the planner's choice: to try others, and to test conversions.
#pragma once

#include <map>
#include <string>

#include "codegen/cuda/layout.h"
#include "igraph/nodes.h"

namespace uir::codegen::cuda {

//! \brief The graph's attribute `layouts`: reg pointer -> [lanes_r, lanes_c, vec_r, vec_c], lanes numbered by rows, or
//! with a fifth number 1 by columns.  Refuses what is no layout.
std::map<std::string, Layout> AskedLayouts(const IGraph& graph);

}  // namespace uir::codegen::cuda
