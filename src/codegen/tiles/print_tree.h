// SPDX-License-Identifier: Apache-2.0
/*!
 * \file print_tree.h
 * \brief The tree of a kernel, syncs included, as lines of C++.
 */
#ifndef UIR_CODEGEN_TILES_PRINT_TREE_H_
#define UIR_CODEGEN_TILES_PRINT_TREE_H_

#include <functional>
#include <string>
#include <vector>

#include "../pipes/tree.h"
#include "../printer.h"

namespace uir {
namespace codegen {
namespace tiles {

/*! \brief The line of a sync in the language of a device. */
using SyncLine = std::function<std::string(const pipes::Sync&)>;

/*! \brief Prints nodes in order. */
void PrintTree(const std::vector<pipes::Node>& body, const SyncLine& sync_line, Printer* out);

}  // namespace tiles
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_TILES_PRINT_TREE_H_
