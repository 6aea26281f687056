// SPDX-License-Identifier: Apache-2.0
// What is done to whole tiles of a vector core.
#pragma once

#include <optional>
#include <string>

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

// fill.cc
//! \brief Fills a tile whose rows start at blocks, up to the end of each row's last block.
//! \param condition C++ text that guards it; empty: always.
void FillTile(Emitter& e, const Tile& tile, const ffi::Any& value, const std::string& condition = "");

// load.cc
/*! \brief What a load must know of its target. */
struct Landing {
  /*! \brief Values outside of the target's box are read later. */
  bool spares = false;
  /*! \brief Nobody's values lie between the end of a row and the end of its last block. */
  bool row_ends_free = true;
};

//! \brief Brings the elements of `from` that lie in both boxes to `to`; with `pad`, the rest of `to`'s box becomes pad.
//!
//! Rows whose columns follow each other in memory come straight; a transposed slice comes as rows of its other side,
//! which are turned in the UB; elements a few apart come with what lies between them and are gathered; others come
//! into a block each.
void Load(Emitter& e, Tile to, Tile from, const std::optional<ffi::Any>& pad, const Landing& landing);

// store.cc
//! \brief Writes the elements that lie in both boxes, and nothing else.
//!
//! Rows whose columns follow each other in memory go straight where they start at blocks of the UB, else by way of a
//! work buffer; a transposed slice is turned in the UB first; other elements get a block each and go one by one.
void Store(Emitter& e, Tile to, Tile from);

// relayout.cc
//! \brief Copies the elements of a box of `from` to `to`; nothing else of `to` changes.
//!
//! By the first of these that both layouts allow: whole blocks (DataCopy); rows of `to` that start at blocks are
//! gathered, so that `from` may have any strides (a transposition gathers columns); rows whose place within a block is
//! known are gathered beside and copied under a bit mask; the scalar unit moves one element after the other.
//! \note `to` and `from` share no bytes.
void Relayout(Emitter& e, const Tile& to, const Tile& from, const Box& box);

/*! \brief Elements of the first block before a tile's first element, where that is the same for every row. */
std::optional<int64_t> PhaseOf(const Emitter& e, const Tile& tile);

}  // namespace uir::codegen::ascend
