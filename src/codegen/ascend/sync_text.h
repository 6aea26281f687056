// SPDX-License-Identifier: Apache-2.0
/*!
 * \file sync_text.h
 * \brief A kernel's tree with its flags and barriers as Ascend C.
 */
#ifndef UIR_CODEGEN_ASCEND_SYNC_TEXT_H_
#define UIR_CODEGEN_ASCEND_SYNC_TEXT_H_

#include <vector>

#include "../scope.h"
#include "../tiles/print_tree.h"

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

#endif  // UIR_CODEGEN_ASCEND_SYNC_TEXT_H_
