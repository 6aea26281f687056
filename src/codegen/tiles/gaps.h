// SPDX-License-Identifier: Apache-2.0
// Tiles as one row: columns, and rows whose gaps nobody uses.
#pragma once

#include "codegen/tiles/emitter.h"

namespace uir::codegen::tiles {

/*! \brief A column whose elements follow each other, as a row; others as they are. */
Tile AsRow(Tile tile);

/*! \brief Whether no slice of the pointer uses the elements between the rows of this one. */
bool GapsFree(const Emitter& e, const ISlice& slice);

}  // namespace uir::codegen::tiles
