// SPDX-License-Identifier: Apache-2.0
// Transpositions within the UB by squares of blocks.
#pragma once

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

/*! \brief Columns of a target that are made at once. */
constexpr int64_t kSquare = 16;

//! \brief Copies a box of a tile that lies the other way round.
//!
//! In squares of blocks (TransDataTo5HD) where elements have two or four bytes, rows of both tiles start at blocks, and
//! the target has whole squares; else element by element.
//! \param turned The source as the target sees it: its rows follow each other, its columns lie apart.
//! \param free Whether what lies outside of the box may be written too.
void Turn(Emitter& e, const Tile& to, const Tile& turned, const Box& box, bool free);

}  // namespace uir::codegen::ascend
