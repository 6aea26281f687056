// SPDX-License-Identifier: Apache-2.0
/*!
 * \file asked_layouts.h
 * \brief Layouts that a graph asks for by name, against the planner's choice: to try others, and to test conversions.
 */
#ifndef UIR_CODEGEN_CUDA_ASKED_LAYOUTS_H_
#define UIR_CODEGEN_CUDA_ASKED_LAYOUTS_H_

#include <map>
#include <string>

#include "../../igraph/nodes.h"
#include "layout.h"

namespace uir {
namespace codegen {
namespace cuda {

/*!
 * \brief The graph's attribute `layouts`: reg pointer -> [lanes_r, lanes_c, vec_r, vec_c], lanes numbered by rows, or
 * with a fifth number 1 by columns.  Refuses what is no layout.
 */
std::map<std::string, Layout> AskedLayouts(const IGraph& graph);

}  // namespace cuda
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_CUDA_ASKED_LAYOUTS_H_
