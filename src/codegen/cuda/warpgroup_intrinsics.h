// SPDX-License-Identifier: Apache-2.0
// PTX wrappers of products that four warps make together (wgmma).
//
// The warps of a warpgroup have 16 rows each of the product's 64, in the layout of mma.m16n8: `low` are the sums of
// rows 0 to 7 of those 16, `high` of rows 8 to 15, two of every 8 columns in a lane.  The first factor is in registers
// as mma.m16n8 has it, or (`_tiles`) in shared memory as the second always is; `wgmma_tile` describes it.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/intrinsics.h"

namespace uir::codegen::cuda {

/*! \brief Columns of one instruction: the widths that products are put together from, widest first. */
constexpr int kWgmmaColumns[] = {256, 192, 128, 96, 64, 32, 16, 8};

/*! \brief A kind of product of four warps. */
struct WgmmaRow {
  /*! \brief The wrapper of mma.sync with the same factors and sums (contract.h). */
  const char* mma;
  /*! \brief Columns of a that one instruction contracts: 32 bytes. */
  int k;
  /*! \brief "f16": the end of the wrapper's name. */
  const char* name;
  /*! \brief PTX types of the sums and factors. */
  const char* types;
  /*! \brief Whether factors may lie with the contracted side across rows in memory: 16-bit types only. */
  bool either_way;
  /*! \brief Whether it keeps fewer bits than mma.sync and a sum in fp32, so that a graph must allow it. */
  bool coarse;
};

/*! \brief The row of what a wrapper of mma.sync multiplies, or nullptr. */
const WgmmaRow* WgmmaRowOf(const std::string& mma);

/*! \brief "wgmma_m64n128k16_f16", with `_tiles` where both factors are in memory. */
std::string WgmmaName(const WgmmaRow& row, int columns, bool tiles);

/*! \brief All wrappers, fences and waits included. */
std::vector<Intrinsic> WarpgroupIntrinsics();

}  // namespace uir::codegen::cuda
