// SPDX-License-Identifier: Apache-2.0
// Which elements of an iOp's operands a vector function works on, and whether they follow each other.
#pragma once

#include <string>
#include <vector>

#include "codegen/ascend/vector_run.h"
#include "codegen/tiles/gaps.h"

namespace uir::codegen::ascend {

using tiles::AsRow;
using tiles::GapsFree;

/*! \brief What is worked on: of every operand the same rows and columns. */
struct Span {
  /*! \brief Whether all elements of every operand follow each other: then there is one row. */
  bool flat = false;
  Bound rows;
  Bound cols;
  /*! \brief The operands from the first such element on. */
  std::vector<Tile> windows;
};

//! \brief The span of an elementwise iOp of the target `slice`: the tiles are the target's and those of sources of its
//! shape (tiles::AsRows).
//!
//! It covers the target's valid box, and more where nobody minds: gaps between rows that no slice uses, and elements
//! outside of the box whose values nobody reads (`Emitter::SparesOutside`).
//! `exact`: the box and nothing else.
//! Elements outside of the box that someone reads need a box that `BeginsAtBlocks`.
//! \note CodegenError where rows do not start at blocks of 32 bytes.
Span SpanOf(Emitter& e, const ISlice& slice, std::vector<Tile> tiles, bool exact = false);

//! \brief Whether rows of some tile, the target's first, do not start at blocks, though they cannot be worked on as
//! one.
//! \param slice The target.
bool RowsBeginLate(Emitter& e, const ISlice& slice, const std::vector<Tile>& tiles, bool exact);
//! \brief Whether the target's valid box begins at blocks of all tiles (the target first), and where is known when the
//! kernel is printed.
bool BeginsAtBlocks(const std::vector<Tile>& tiles);

/*! \brief A named count of `count - done`, held to [0, most]. */
Bound PartOf(Emitter& e, const Bound& count, const std::string& done, int64_t most);
/*! \brief The count, held to what is not negative. */
Bound NotNegative(const Bound& count);

}  // namespace uir::codegen::ascend
