// SPDX-License-Identifier: Apache-2.0
// One rectangle between global memory and rows of the UB that start at blocks: DataCopy or DataCopyPad.
#pragma once

#include <string>

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

//! \brief Copies the elements of a box from one tile to the other.
//!
//! Both have columns that follow each other; every row of `ub` starts at a block.  DataCopy where the box and the
//! distances are proved to be whole blocks, else DataCopyPad.
//! \param load From `gm` to `ub`; a load spoils the rest of each row's first and last block, or sets it to `pad`.
//! \param pad A literal of the stored type, or empty.
//! \note A store takes boxes whose first column starts at a block.
void Transfer(Emitter& e, const Tile& ub, const Tile& gm, const Box& box, bool load, const std::string& pad = "");

}  // namespace uir::codegen::ascend
