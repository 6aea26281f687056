// SPDX-License-Identifier: Apache-2.0
// How long shared memory takes for one access of a warp.
//
// Shared memory has 32 banks of 4 bytes, successive words in successive banks; lanes that name one word share it
// (CUDA C++ Programming Guide, "Compute Capabilities", "Shared Memory").  A pass brings 128 bytes: lanes of 8 bytes
// are served by halves of the warp, lanes of 16 by quarters.  The host model counts by the same rule.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/cuda/layout.h"

namespace uir::codegen::cuda {

/*! \brief Bytes that the widest access of a lane has, and that one pass brings. */
constexpr int64_t kLaneBytes = 16, kPassBytes = 128;

/*! \brief Passes of one access of `bytes` bytes a lane at these byte addresses. */
int64_t BankPasses(const std::vector<int64_t>& addresses, int64_t bytes);

/*! \brief One access of a warp to a tile: the lanes' first elements (row, column), and how many neighbours of each. */
struct TileAccess {
  int64_t elements = 1;
  std::vector<std::pair<int64_t, int64_t>> at;
};

//! \brief The accesses by which lanes bring a whole fragment, `elements` neighbours along its rows or columns at once.
//! Lanes and registers without an element take no part.
std::vector<TileAccess> AccessesOf(const Fragment& fragment, int64_t elements, bool along_rows);

}  // namespace uir::codegen::cuda
