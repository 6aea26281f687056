// SPDX-License-Identifier: Apache-2.0
// Products that four neighbouring warps make together (sm_90a): when they can, when that pays, how b must lie.
//
// Warps 4n to 4n + 3 of a block run one and the same iOp, as no loop of a graph depends on the unit.  Where they
// share b, their products of 16 rows each are one product of 64 rows: wgmma, which reads b once for all four of them,
// out of shared memory.  There a tile is made of *atoms*, 8 lines of up to 128 bytes whose 16-byte chunks change
// places with the number of the line (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").  A tile
// with lines of 32, 64 or 128 bytes consists of such atoms when it is swizzled; one with longer lines has them side by
// side for every 8 of its lines, one after the other in memory.
//
// Which of the two ways is printed is data (`wgmma_cost.cc`), unless the graph's attribute `wgmma` says it: true
// wherever it is possible, false nowhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/warpgroup_intrinsics.h"
#include "igraph/nodes.h"

namespace uir::codegen::cuda {

struct MmaRow;

/*! \brief Warps that make one product, and rows of a that each of them has. */
constexpr int kWarpgroup = 4, kWarpRows = 16;
/*! \brief Lines of an atom, and the bytes of its longest ones. */
constexpr int64_t kAtomRows = 8, kAtomLine = 128;
//! \brief Columns of a that a tf32 instruction contracts.  mma.sync may take them in any order, as long as both factors
//! do; wgmma reads b from memory in theirs, so a's fragments are loaded by ldmatrix, which keeps it.
constexpr int kTf32Depth = 8;

/*! \brief A factor in shared memory as wgmma reads it. */
struct WgmmaTile {
  /*! \brief Where the slice of the first of four warps begins. */
  Affine offset;
  /*! \brief Bytes of a line in memory, and 16-byte chunks of an atom's line. */
  int64_t pitch = 0;
  int chunks = 8;
  /*! \brief Whether lines run along rows of a (columns of b), not along the contracted side. */
  bool across = false;
};

/*! \brief How a product is printed on an architecture that has wgmma. */
struct WgmmaChoice {
  /*! \brief The kind of product, or nullptr: mma.sync. */
  const WgmmaRow* row = nullptr;
  /*! \brief First column and columns of each instruction. */
  std::vector<std::pair<int64_t, int>> pieces;
  /*! \brief b, and a where it comes from shared memory too. */
  WgmmaTile b;
  std::optional<WgmmaTile> a;
  /*! \brief Why; a line for people. */
  std::string reason;
};

//! \brief An offset as four neighbouring warps see it: that of the first, and how much each further warp adds; nothing
//! where it is not shown to be a multiple of the warp's number.
std::optional<std::pair<Affine, int64_t>> OfFourWarps(const Affine& offset);

/*! \brief Figures of one product of a warp, for `WgmmaPays`. */
struct ProductFigures {
  int64_t rows, cols, depth;
  int bytes;
  /*! \brief Instructions of four warps for 64 rows, side by side. */
  int pieces;
  /*! \brief Whether a lies in memory, and is read from there by wgmma itself. */
  bool a_in_memory, a_tiles;
};

/*! \brief Whether four warps are faster together than each for itself, and by which figures (`reason`). */
bool WgmmaPays(const ProductFigures& figures, std::string* reason);

}  // namespace uir::codegen::cuda
