// SPDX-License-Identifier: Apache-2.0
// What is done to whole tiles of a core.
#pragma once

#include <string>
#include <vector>

#include "codegen/bang/emitter.h"

namespace uir::codegen::bang {

// copy.cc
//! \brief Copies the elements of a box of `from` to `to`; nothing else of `to` changes.
//!
//! One copy where the box is one run on both sides; segments where rows are runs; where columns lie apart, segments of
//! one element in the 3-D form (slow: the report says so).
//! \note `to` and `from` share no bytes.  Between SRAM and GDRAM the memory core copies (memory_core.h).
void Copy(Emitter& e, const Tile& to, const Tile& from, const Box& box);

/*! \brief The lines of such a copy by one of the forms of a function; none for an empty box. */
std::vector<std::string> CopyLines(Emitter& e, const Tile& to, const Tile& from, const Box& box,
                                   const std::string& name);

// fill.cc
//! \brief Fills the elements of a tile's box.
//! \param condition C++ text that guards it; empty: always.
void FillTile(Emitter& e, const Tile& tile, const ffi::Any& value, const std::string& condition = "");

// transpose.cc
//! \brief Rows of `from` as columns of `to`, both packed in NRAM: so many rows of so many elements, C++ texts.
//! \param condition C++ text that guards it; empty: always.
void TurnRows(Emitter& e, const Tile& to, const Tile& from, const std::string& rows, const std::string& cols,
              const std::string& condition = "");
/*! \brief to[i, j] = from[j, i] over the box of `to`, both in NRAM. */
void TransposeTile(Emitter& e, const Tile& to, const Tile& from);

// broadcast.cc
/*! \brief to = the column (axis "row") or row (axis "col") of `from` again and again, over the box of `to`. */
void BroadcastTile(Emitter& e, const Tile& to, const Tile& from, const std::string& axis);

// reduce.cc
//! \brief to = the box of `from` reduced by add, mul, max or min; the identity where the box is empty.
//! \param axis "row": each row over its columns, to (R, 1); "col": each column over its rows, to (1, C).
//!
//! Floats are computed in fp32 and rounded once.  Sums and products are trees: halves onto each other until one is
//! left.
void ReduceTile(Emitter& e, const Tile& to, const Tile& from, const std::string& op, const std::string& axis);

}  // namespace uir::codegen::bang
