// SPDX-License-Identifier: Apache-2.0
// The tree of a kernel, syncs included, as lines of C++.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/pipes/tree.h"
#include "codegen/printer.h"

namespace uir::codegen::tiles {

/*! \brief The line of a sync in the language of a device. */
using SyncLine = std::function<std::string(const pipes::Sync&)>;

/*! \brief Prints nodes in order. */
void PrintTree(const std::vector<pipes::Node>& body, const SyncLine& sync_line, Printer* out);

}  // namespace uir::codegen::tiles
