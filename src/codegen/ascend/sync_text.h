// SPDX-License-Identifier: Apache-2.0
// A kernel's tree with its flags and barriers as Ascend C.
#pragma once

#include <string>
#include <vector>

#include "codegen/pipes/plan.h"
#include "codegen/scope.h"
#include "codegen/tiles/print_tree.h"

namespace uir::codegen::ascend {

//! \brief Prints a kernel's nodes in order.
//! \param scope Text of pid and of loop variables, for ids of flags.
//! \param first Number in the file of the printer's first line.
//! \return A note for each sync: its number, name and lines, and what it is for.
std::vector<std::string> PrintTree(const pipes::Plan& plan, const Scope& scope, int64_t first, Printer* out);

}  // namespace uir::codegen::ascend
