// SPDX-License-Identifier: Apache-2.0
// What the cube core of a block does in a kernel with products: the same loops, with the contractions alone.
#pragma once

#include <string>
#include <vector>

#include "codegen/ascend/emitter.h"
#include "codegen/ascend/products.h"
#include "codegen/printer.h"
#include "codegen/tiles/dealt.h"

namespace uir::codegen::ascend {

//! \brief Memories of the cube core, their tensors, loops, contractions and syncs.
//! \param first Number in the file of the printer's first line.
//! \return Notes on the syncs.
std::vector<std::string> PrintCubePart(Plan* plan, const Products& products, const tiles::Dealing& dealing,
                                       int64_t first, Printer* out);

}  // namespace uir::codegen::ascend
