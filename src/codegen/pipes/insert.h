// SPDX-License-Identifier: Apache-2.0
// Placed syncs as nodes of the tree.
#pragma once

#include <string>
#include <vector>

#include "codegen/pipes/program.h"
#include "codegen/pipes/syncs.h"

namespace uir::codegen::pipes {

//! \brief The tree with its syncs: sets right behind an instruction, barriers and waits right before one.
//! \param comments By sync: what it orders.
std::vector<Node> Insert(const std::vector<Node>& nodes, const Program& program, const std::vector<Placed>& syncs,
                         const std::vector<std::string>& comments);

}  // namespace uir::codegen::pipes
