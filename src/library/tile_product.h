// SPDX-License-Identifier: Apache-2.0
// Many rows of x by blocks of a packed weight on the matrix tiles of a CPU (AMX, bfloat16, sums in float32). Numbers of
// float32 are sums of pieces of 8 bits: three of each side, of which six products count, are as exact as float32.
#pragma once

#include "library/parallel.h"
#include "library/quantized_layout.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_TILES 1
#endif

namespace uir::library {

/*! Rows from which on tiles pay. */
constexpr int64_t kTiledRows = 16;

/*! Whether this CPU has such tiles, and its system lets this process use them. */
bool HasTiles();

//! The product of rows [rows, k] of unit stride with a weight, both in `pieces` (1, 2 or 3) of 8 bits; false where a
//! number of x is infinite, NaN, or very small or large: nothing is written then. Of a weight of float16 false too
//! where a number is none: what is written then is to be computed again.
bool RunTiles(const Panels& panels, const Operands& to, const float* x, int64_t row_stride, int64_t rows, int pieces,
              int tasks);

}  // namespace uir::library
