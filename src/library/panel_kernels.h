// SPDX-License-Identifier: Apache-2.0
// The innermost part of products of many rows with a constant matrix: some rows by some vectors of columns, whose sums
// stay in registers for a piece of k.
#pragma once

#include <cstdint>

#include "library/epilogue.h"
#include "library/quantized_layout.h"

namespace uir::library {

/*! What one tile reads. */
struct PanelTile {
  const float* x = nullptr;        // [depth, rows]
  const float* weight = nullptr;   // [depth, width]
  int64_t width = 0;               // floats of a row of the weight, and of the sums
  int64_t depth = 0;               // products of a sum
  const char* ahead = nullptr;     // what is brought into the second cache meanwhile
  int64_t fetches = 0, lines = 0;  // lines of it; and of these at once
  bool first = true;               // sums begin with 0, not with what is there
  float* out = nullptr;            // where results will be, `out_row` floats from row to row; null: not yet
  int64_t out_row = 0;
  bool ends = false;  // sums become results at once, by what follows
  float alpha = 1.0f;
  const float *bias = nullptr, *residual = nullptr;  // of the first column; null: none
  bool bounded = false;
  float low = 0.0f, high = 0.0f;  // of results, where they are bounded
};

/*! What becomes of sums. */
struct PanelEnd {
  const Epilogue* epilogue = nullptr;
  int64_t columns = 0;  // of the result
  Operands at{};        // bias, residual and result
};

/*! Some rows of `depth` numbers, `row` floats apart, as a tile reads them. */
typedef void (*PanelPackOf)(const float* from, int64_t row, int64_t depth, float* to);
/*! Sums of a tile into `to`, [rows, width], or the result. */
typedef void (*PanelSumsOf)(const PanelTile& tile, float* to);
/*! The results of so many rows of sums, which are those from `row` and `first` on. */
typedef void (*PanelFinishOf)(const PanelEnd& end, const float* sums, int64_t width, int rows, int64_t row,
                              int64_t first);

/*! Tiles for one width of vectors. */
struct PanelKernels {
  const char* name;
  int lanes, most_vectors, most_rows;  // of a tile
  int steps;                           // products of a sum from one place where lines are asked for to the next
  PanelPackOf (*pack)(int rows);
  PanelSumsOf (*sums)(int vectors, int rows);
  PanelFinishOf (*finish)(Activation activation);
};

/*! Of a product of float32; null where measurements left products of many rows to the library. */
const PanelKernels* PanelKernelsHere();

/*! Of blocks of kBlock columns, which a tile has all of; null without AVX2. */
const PanelKernels* BlockKernelsHere();

//! In vectors of eight floats, where no wider ones are faster: without AVX512, or where the CPU computes its vectors by
//! halves. Null elsewhere, and without AVX2.
const PanelKernels* PanelKernelsOfEight();

}  // namespace uir::library
