// SPDX-License-Identifier: Apache-2.0
// Which lane of a warp holds which element of a slice, and in which register.
//
// Element (i, j) of an (R, C) slice lies in the lane at position (i / vec_r % lanes_r, j / vec_c % lanes_c) of
// a grid of lanes_r x lanes_c = 32 lanes.  A lane holds blocks of vec_r x vec_c neighbouring elements, one block
// for every lanes_r*vec_r rows and lanes_c*vec_c columns of the slice:
//
//     i = (block_r * lanes_r + lane_r) * vec_r + r        j = (block_c * lanes_c + lane_c) * vec_c + c
//     register = ((block_r * blocks_c + block_c) * vec_r + r) * vec_c + c
//
// A side of length 1 is *replicated*: all lanes along it hold the same element, so that a row's sum is at hand in
// every lane that holds a part of the row.  Where a longer side is no multiple of its block, the last lanes hold
// registers without an element; they may contain anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uir::codegen::cuda {

constexpr int kLanes = 32;

/*! \brief A distribution of elements over the lanes of a warp; all figures are powers of two. */
struct Layout {
  int lanes_r = 1;
  int lanes_c = kLanes;
  int vec_r = 1;
  int vec_c = 1;
  /*! \brief Lane number = r*lanes_c + c, or c*lanes_r + r where this is set. */
  bool lanes_col_major = false;

  bool operator==(const Layout& other) const;
  bool operator!=(const Layout& other) const { return !(*this == other); }
  /*! \brief Rows and columns between two blocks of a lane. */
  int step_r() const { return lanes_r * vec_r; }
  int step_c() const { return lanes_c * vec_c; }
  /*! \brief "lanes (8, 4), vec (1, 2)". */
  std::string ToString() const;
};

/*! \brief A layout on a slice of a certain shape: what a register array holds. */
struct Fragment {
  Layout layout;
  int64_t rows = 1;
  int64_t cols = 1;

  Fragment() = default;
  /*! \brief The layout cut to the shape: a side of length 1 has vec 1. */
  Fragment(Layout layout, int64_t rows, int64_t cols);

  bool operator==(const Fragment& other) const;
  bool operator!=(const Fragment& other) const { return !(*this == other); }

  bool replicated_r() const { return rows == 1; }
  bool replicated_c() const { return cols == 1; }
  /*! \brief Blocks of a lane along a side. */
  int64_t blocks_r() const;
  int64_t blocks_c() const;
  /*! \brief Registers (elements) of a lane. */
  int64_t size() const { return blocks_r() * blocks_c() * layout.vec_r * layout.vec_c; }
  /*! \brief Whether every register of every lane holds an element along the side. */
  bool exact_r() const { return replicated_r() || rows % layout.step_r() == 0; }
  bool exact_c() const { return replicated_c() || cols % layout.step_c() == 0; }
  bool exact() const { return exact_r() && exact_c(); }

  /*! \brief Which registers of which lanes hold element (i, j): pairs (lane, register), one for every copy. */
  std::vector<std::pair<int, int64_t>> Owners(int64_t i, int64_t j) const;
};

//! \brief Whether two arrays hold the same elements in the same registers, so that one may be used as the other.
//!
//! It is weaker than equality of layouts: of (R, 1) only the rows' part matters, of (1, 1) nothing.
bool SameHolding(const Fragment& a, const Fragment& b);

}  // namespace uir::codegen::cuda
