// SPDX-License-Identifier: Apache-2.0
/*!
 * \file sync_text.h
 * \brief A kernel's tree with its flags and barriers as Ascend C.
 */
#ifndef UIR_CODEGEN_ASCEND_SYNC_TEXT_H_
#define UIR_CODEGEN_ASCEND_SYNC_TEXT_H_

#include <string>
#include <vector>

#include "../pipes/plan.h"
#include "../scope.h"
#include "../tiles/print_tree.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Prints a kernel's nodes in order.
 * \param scope Text of pid and of loop variables, for ids of flags.
 * \param first Number in the file of the printer's first line.
 * \return A note for each sync: its number, name and lines, and what it is for.
 */
std::vector<std::string> PrintTree(const pipes::Plan& plan, const Scope& scope, int64_t first, Printer* out);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_SYNC_TEXT_H_
