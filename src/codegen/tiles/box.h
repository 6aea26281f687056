// SPDX-License-Identifier: Apache-2.0
// Valid boxes of tiles: what two have in common, what lies outside; names for what only the run can compare.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/tiles/tile.h"

namespace uir::codegen::tiles {

class Emitter;

/*! \brief The smaller of two bounds, named where only the run knows. */
Bound Smaller(Emitter& e, const Bound& a, const Bound& b, const std::string& hint);
/*! \brief The greater of two bounds, named where only the run knows. */
Bound Greater(Emitter& e, const Bound& a, const Bound& b, const std::string& hint);
/*! \brief A count that is not negative: itself, or a name. */
Bound AtLeastZero(Emitter& e, const Bound& count, const std::string& hint);

/*! \brief What lies in both boxes; bounds that only the run can compare become names. */
Box Both(Emitter& e, const Box& a, const Box& b);
/*! \brief Whether two boxes have the same texts and ranges. */
bool SameBox(const Box& a, const Box& b);
/*! \brief Rows and columns exchanged. */
Box Turned(const Box& box);
/*! \brief Where the columns of a box end in one row: where they begin, in a row that is not in the box. */
Bound EndInRow(const Box& box, int64_t row);
/*! \brief Whether the tensors of two tiles share bytes. */
bool ShareBytes(const Tile& a, const Tile& b);
/*! \brief Whether element (i, j) of both has the same address. */
bool SameBytes(const Tile& a, const Tile& b);
//! \brief Two tiles of one shape in parts of at most `some` rows, each with its own box.
//! \param move Is given the target's part and the source's.
void InParts(Emitter& e, const Tile& to, const Tile& from, int64_t some,
             const std::function<void(const Tile& to, const Tile& from)>& move);
/*! \brief Lines in a loop over the rows of a box, over its columns, over both. */
std::vector<std::string> OverRows(const std::string& row, const Box& box, const std::vector<std::string>& lines);
std::vector<std::string> OverCols(const std::string& col, const Box& box, const std::vector<std::string>& lines);
std::vector<std::string> OverBox(const std::string& row, const std::string& col, const Box& box,
                                 const std::vector<std::string>& lines);
/*! \brief C++ text of the condition that something of a tile lies outside of a box; empty where that is so. */
std::string OutsideText(const Tile& tile, const Box& box);

}  // namespace uir::codegen::tiles
