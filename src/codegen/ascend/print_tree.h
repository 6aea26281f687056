// SPDX-License-Identifier: Apache-2.0
/*!
 * \file print_tree.h
 * \brief The tree of a kernel, syncs included, as lines of Ascend C.
 */
#ifndef UIR_CODEGEN_ASCEND_PRINT_TREE_H_
#define UIR_CODEGEN_ASCEND_PRINT_TREE_H_

#include <vector>

#include "../pipes/tree.h"
#include "../printer.h"
#include "../scope.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Prints nodes in order.
 * \param scope Text of pid and of loop variables, for ids of flags.
 */
void PrintTree(const std::vector<pipes::Node>& body, const Scope& scope, Printer* out);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_PRINT_TREE_H_
