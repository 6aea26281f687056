// SPDX-License-Identifier: Apache-2.0
/*!
 * \file gaps.h
 * \brief Tiles as one row: columns, and rows whose gaps nobody uses.
 */
#ifndef UIR_CODEGEN_TILES_GAPS_H_
#define UIR_CODEGEN_TILES_GAPS_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace tiles {

/*! \brief A column whose elements follow each other, as a row; others as they are. */
Tile AsRow(Tile tile);

/*! \brief Whether no slice of the pointer uses the elements between the rows of this one. */
bool GapsFree(const Emitter& e, const ISlice& slice);

}  // namespace tiles
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_TILES_GAPS_H_
