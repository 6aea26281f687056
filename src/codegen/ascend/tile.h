// SPDX-License-Identifier: Apache-2.0
// Tiles in the unified buffer (UB) and in global memory (GM), and the blocks that they reach into.
#pragma once

#include "codegen/tiles/box.h"
#include "codegen/tiles/lines.h"
#include "codegen/tiles/tile.h"

namespace uir::codegen::ascend {

using tiles::AtLeastZero;
using tiles::Both;
using tiles::Bound;
using tiles::Box;
using tiles::EndInRow;
using tiles::ForText;
using tiles::Looped;
using tiles::MinText;
using tiles::OutsideText;
using tiles::OverBox;
using tiles::OverCols;
using tiles::OverRows;
using tiles::Reads;
using tiles::SameBox;
using tiles::SameBytes;
using tiles::ShareBytes;
using tiles::Smaller;
using tiles::Tile;
using tiles::TimesText;
using tiles::Turned;
using tiles::Writes;

/*! \brief Bytes of a block, the unit in which the UB is addressed by vector functions and copies. */
constexpr int64_t kBlockBytes = 32;
/*! \brief Bytes that a repeat of a vector function works on. */
constexpr int64_t kRepeatBytes = 256;

/*! \brief Whether every row starts at a 32-byte block, proved. */
inline bool RowsAligned(const Tile& tile) {
  return tile.align >= kBlockBytes && (tile.rows == 1 || tile.row_stride * tile.bytes % kBlockBytes == 0);
}
/*! \brief Distance of the rows in blocks, where they are aligned. */
inline int64_t RowBlocks(const Tile& tile) { return tile.row_stride * tile.bytes / kBlockBytes; }
//! \brief Statements that copy counts of which only the run knows that they are not 0, under a condition; as they are
//! where it is proved.
//!
//! A copy of nothing is no instruction: its fields begin at 1, and its operands may start behind their tensors.
std::vector<std::string> WhereSome(const std::vector<std::string>& lines, const std::vector<Bound>& counts);
/*! \brief The blocks that the rows reach into: what a copy by blocks touches. */
pipes::Region BlocksOf(const Tile& tile, bool write);

}  // namespace uir::codegen::ascend
