// SPDX-License-Identifier: Apache-2.0
// Tiles as one row: columns, and rows whose gaps nobody uses.
#pragma once

#include <vector>

#include "codegen/tiles/emitter.h"

namespace uir::codegen::tiles {

/*! \brief A column whose elements follow each other, as a row; others as they are. */
Tile AsRow(Tile tile);

/*! \brief Tiles of one shape as rows where all of them are such columns; else as they are. */
std::vector<Tile> AsRows(std::vector<Tile> tiles);

/*! \brief Whether no slice of the pointer uses the elements between the rows of this one. */
bool GapsFree(const Emitter& e, const ISlice& slice);

}  // namespace uir::codegen::tiles
