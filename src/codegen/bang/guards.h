// SPDX-License-Identifier: Apache-2.0
// The tree of a kernel whose clusters meet: work of the cores and of the memory core under their conditions.
#pragma once

#include <vector>

#include "codegen/pipes/tree.h"
#include "codegen/printer.h"
#include "codegen/tiles/print_tree.h"

namespace uir::codegen::bang {

//! \brief Prints nodes in order: what stands between two meetings under `if (__is_ipu())` or `if (__is_mpu())`,
//! meetings and the loops around them under neither.
void PrintGuarded(const std::vector<pipes::Node>& body, const tiles::SyncLine& sync_line, Printer* out);

}  // namespace uir::codegen::bang
