// SPDX-License-Identifier: Apache-2.0
// The innermost part of convolutions in tiles of our own: some pixels by some vectors of output channels, whose sums
// stay in registers. One table of such code for each width of vectors.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "library/attrs.h"
#include "library/packed_weight.h"
#include "library/winograd_cost.h"

namespace uir::library {

/*! What one tile reads and writes. */
struct Tile {
  const float* x = nullptr;          // the images
  const int64_t* windows = nullptr;  // where in them the window of each pixel begins, maybe before them
  const uint64_t* inside = nullptr;  // of each pixel a bit for each tap that lies in its image
  const float* zeros = nullptr;      // what the other taps read
  const int64_t* taps = nullptr;     // where taps lie from the beginning of a window
  int64_t tap_count = 0;
  const float* weight = nullptr;                     // [taps, depth, vectors * lanes]
  const char* ahead = nullptr;                       // what is brought into the second cache meanwhile
  const float *bias = nullptr, *residual = nullptr;  // null: none
  float* out = nullptr;
  int64_t depth = 0;              // products of a sum, for each tap
  int64_t fetches = 0;            // with how many of these goes a line of `ahead`
  int64_t row = 0, channels = 0;  // from pixel to pixel of the result; how many channels of it these are
  int64_t apart = 0;              // floats from a panel of the weight to the one beside it
  const Epilogue* epilogue = nullptr;
  bool bounded = false;  // nothing but bounds comes after the sum, of product, bias and residual
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

/*! The sums of one patch of Winograd's F(2x2, 3x3), which make 2x2 pixels. */
struct Patch {
  const float* sums = nullptr;  // of position p from p * position on
  int64_t position = 0;
  const float *bias = nullptr, *residual = nullptr;  // null: none
  float* out = nullptr;
  int64_t line = 0, pixel = 0, channels = 0;  // from row to row of the result, and from pixel to pixel
  int rows = 2, columns = 2;                  // those that the image has
  const Epilogue* epilogue = nullptr;
};

/*! Pixels side by side by a panel of a weight, as `Tile` has it; their results lie side by side too. */
struct PixelRow {
  const float* x = nullptr;
  int64_t depth = 0, pixels = 0;
  const float *weight = nullptr, *bias = nullptr;  // null: none
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  float* out = nullptr;
};

/*! Some channels of a row of a result that has a window for each channel, in whole vectors. */
struct WindowRow {
  const float* const* x = nullptr;  // where the first window begins, by lines of a window; zeros beside an image
  int64_t lines = 0, columns = 0;   // of a window
  int64_t column = 0, pixel = 0;    // floats from column to column of a window, and from window to window
  int64_t channels = 0;             // these are side by side in images
  int64_t tap = 0;                  // floats from tap to tap of the weight, and from pixel to pixel of the result
  const float *weight = nullptr, *bias = nullptr;  // null: none
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  float* out = nullptr;
  int64_t pixels = 0;
};

/*! Bytes of a cache line. */
constexpr int64_t kLine = 64;

/*! Sums of a tile, into the result where the tile is bounded and its channels are whole vectors, else into `to`. */
typedef void (*SumsOf)(const Tile& tile, float* to);
/*! Residual and activation of the sums of so many vectors and pixels, and their places in the result. */
typedef void (*FinishOf)(const Tile& tile, const float* sums, int vectors, int pixels);

typedef void (*PixelRowOf)(const PixelRow& row);
typedef void (*WindowsOf)(const WindowRow& row);

/*! The channels of 4x4 pixels, row by row, as 16 numbers each; number p lies `position` floats behind the one before.
 */
typedef void (*SpreadOf)(const float* const* pixels, int64_t channels, float* to, int64_t position);
/*! At one position: so many vectors of sums of products of patches, `row` floats apart, and a weight [depth, vectors *
 * lanes], patch by patch. */
typedef void (*PatchSumsOf)(const float* x, int64_t row, const float* weight, int64_t depth, float* to);
/*! The results of a patch. */
typedef void (*GatherOf)(const Patch& patch);

/*! `rows` x `columns` numbers, rows `from_row` floats apart, transposed. */
typedef void (*TransposeOf)(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                            int64_t to_row);

/*! Vectors of a tile, at most. */
constexpr int kMostVectors = 4;
/*! Pixels of a tile at most whose vectors may be of several panels. */
constexpr int kMostBesidePixels = 4;
/*! Vectors of sums of several panels that stay in registers together. */
constexpr int kSumsBeside = 12;
/*! Floats of the sums of a tile, at most. */
constexpr int kMostSums = 6 * 64;

/*! Fewer results than `pixels` of sums of `products` and more. */
struct TileLimit {
  int64_t products, pixels;
};

/*! What tiles compute sooner than the library, by measurement (docs/library-operators.md). */
struct TileRule {
  bool windows;         // convolutions of more than a pixel, or beside images, too
  TileLimit limits[2];  // one of these holds
  int64_t late;         // or sums are of so many products, and a residual follows the activation
  int64_t rows;         // products of fewer rows
  int64_t columns;      // and of fewer columns
  bool Holds(const Conv2dAttrs& attrs) const;
};

/*! Tiles for one width of vectors. */
struct TileKernels {
  const char* name;
  int lanes;
  int64_t panel, widest;   // output channels of a panel of the weight; and of the last one, at most
  const int* most_pixels;  // pixels of a tile, at most, by its vectors of channels; 0: no such tile
  const int* most_beside;  // panels of a tile, at most, by its pixels: sums of few would wait for each other
  bool fetches;            // whether a panel is brought into the second cache while the one before is in use
  TileRule rule;
  CoreRates core;
  SumsOf (*sums)(int vectors, int pixels);
  SumsOf (*beside)(int panels, int pixels);   // of panels of the usual width
  FinishOf (*finish)(Activation activation);  // null: not one of ours
  SpreadOf spread;
  PatchSumsOf (*patch_sums)(int vectors, int patches);
  GatherOf (*gather)(Activation activation);  // null: not one of ours
  TransposeOf transpose;
  PixelRowOf (*pixels)(int vectors);
  WindowsOf (*windows)(int64_t columns, int64_t step);  // of any number of them; step 0: they lie apart
};

//! A weight [o, i, kh, kw] in panels of as many output channels as tiles take, which lie side by side for each channel
//! of the input, tap by tap.
WeightFormat TilePanels(const TileKernels& kernels, const std::vector<int64_t>& dims);

/*! For the widest vectors of this CPU, or those of `SetTileVectors`; null without AVX2. */
const TileKernels* TileKernelsHere();

/*! The tables that this CPU can use, the best first. The last one has the code for vectors of 16 floats in pairs of
 * vectors of 8: what CPUs with AVX512 run, for tests on others. */
std::vector<std::string> TileVectors();
/*! From now on new plans use that one; false where there is none. */
bool SetTileVectors(const std::string& name);

}  // namespace uir::library
