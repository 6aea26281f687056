// SPDX-License-Identifier: Apache-2.0
// Pixels by a panel of a weight, tile by tile.
#pragma once

#include <algorithm>

#include "base/rounding.h"
#include "library/conv2d_tile_kernels.h"

namespace uir::library {

/*! What comes after a sum. */
struct Bounds {
  bool all = false;  // bounds are all of it, and a residual before them
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

inline Bounds BoundsOf(const Epilogue& epilogue) {
  const bool clips = epilogue.activation == Activation::kClip, starts = epilogue.activation == Activation::kRelu;
  Bounds made;
  made.all =
      (clips || starts || epilogue.activation == Activation::kNone) && epilogue.residual != Residual::kAfterActivation;
  if (clips) made.low = epilogue.parameters[0], made.high = epilogue.parameters[1];
  if (starts) made.low = 0.0f;
  return made;
}

/*! Tiles by a panel of the weight that `weight` begins; where pixels and results are is left to say. */
inline Tile PanelTile(const Epilogue& epilogue, const Panel& panel, const char* weight, const float* bias) {
  Tile tile;
  tile.weight = reinterpret_cast<const float*>(weight + panel.offset);
  tile.bias = epilogue.bias ? bias + panel.begin : nullptr;
  tile.channels = panel.size;
  tile.epilogue = &epilogue;
  const Bounds bounds = BoundsOf(epilogue);
  tile.bounded = bounds.all, tile.low = bounds.low, tile.high = bounds.high;
  return tile;
}

//! All tiles of so many pixels; `place(begin, &tile)` says what the one from pixel `begin` on reads and writes.
//! Meanwhile bytes from `ahead` on come into the second cache, unless it is null.
template <typename Place>
void RunTiles(const TileKernels& kernels, FinishOf finish, Tile tile, int64_t pixels, const char* ahead,
              int64_t ahead_bytes, Place place) {
  const int vectors = static_cast<int>(CeilDiv<int64_t>(tile.channels, kernels.lanes));
  const int tiles = static_cast<int>(CeilDiv<int64_t>(pixels, kernels.most_pixels[vectors - 1]));
  alignas(kLine) float sums[kMostSums];
  tile.fetches = ahead ? std::min(CeilDiv<int64_t>(ahead_bytes, kLine * tiles * tile.tap_count), tile.depth) : 0;
  const bool finishes = !tile.bounded || tile.channels % kernels.lanes;
  const int64_t least = pixels / tiles, more = pixels % tiles;
  int64_t begin = 0;
  for (int number = 0; number < tiles; ++number) {
    const int count = static_cast<int>(least + (number < more));
    tile.ahead = ahead + number * tile.fetches * tile.tap_count * kLine;
    place(begin, &tile);
    kernels.sums(vectors, count)(tile, sums);
    if (finishes) finish(tile, sums, vectors, count);
    begin += count;
  }
}

}  // namespace uir::library
