// SPDX-License-Identifier: Apache-2.0
/*!
 * \file guards.h
 * \brief The tree of a kernel whose clusters meet: work of the cores and of the memory core under their conditions.
 */
#ifndef UIR_CODEGEN_BANG_GUARDS_H_
#define UIR_CODEGEN_BANG_GUARDS_H_

#include <vector>

#include "../pipes/tree.h"
#include "../printer.h"
#include "../tiles/print_tree.h"

namespace uir {
namespace codegen {
namespace bang {

/*!
 * \brief Prints nodes in order: what stands between two meetings under `if (__is_ipu())` or `if (__is_mpu())`, meetings
 * and the loops around them under neither.
 */
void PrintGuarded(const std::vector<pipes::Node>& body, const tiles::SyncLine& sync_line, Printer* out);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_GUARDS_H_
