// SPDX-License-Identifier: Apache-2.0
// A tile of a product of many rows and a constant matrix, some rows by some vectors of columns, in vectors of kLanes
// floats. No guard: panel_kernels.cc includes this in a namespace and for instructions of its own; UIR_VECTORS has
// their bits.

#include "library/vector_epilogue.h"
// behind it
#include "library/add_products.h"
#include "library/pack_rows.h"

/*! Products of every sum from one place where lines are asked for to the next: asked for all at once, they would keep
 * what the products read waiting. */
constexpr int kSteps = 4;

/*! Sums of a piece's products, after those of the pieces before it where it is not the first. */
template <int kVectors, int kRows>
void Sums(const PanelTile& tile, float* to) {
  Vector sums[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
    if (tile.out) {  // which may begin in the middle of a line
      __builtin_prefetch(tile.out + r * tile.out_row, 1, 3);
      __builtin_prefetch(tile.out + r * tile.out_row + kVectors * kLanes - 1, 1, 3);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] =
          tile.first ? Vector{} : Vector(*reinterpret_cast<const Unaligned*>(to + r * tile.width + v * kLanes));
    }
  }
  const float *weight = tile.weight, *x = tile.x;
  const char* ahead = tile.ahead;
  const int64_t width = tile.width;
  const auto step = [&](int at) __attribute__((always_inline)) {
    Vector some[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) some[v] = *reinterpret_cast<const Unaligned*>(weight + v * kLanes);
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) AddProducts<kVectors>(some, x + at * kRows + r, sums[r]);
    weight += width;
  };
  int64_t k = 0;
  for (int64_t left = tile.fetches; left > 0 && k + kSteps <= tile.depth; k += kSteps, left -= tile.lines) {
    for (int64_t at = 0; at < tile.lines; ++at, ahead += kLine) __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 4
    for (int at = 0; at < kSteps; ++at) step(at);
    x += kSteps * kRows;
  }
  for (; k + kSteps <= tile.depth; k += kSteps) {
#pragma GCC unroll 4
    for (int at = 0; at < kSteps; ++at) step(at);
    x += kSteps * kRows;
  }
  for (; k < tile.depth; ++k, x += kRows) step(0);
  if (!tile.ends) {
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Unaligned*>(to + r * tile.width + v * kLanes) = sums[r][v];
    }
    return;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vector bias = tile.bias ? Vector(*reinterpret_cast<const Unaligned*>(tile.bias + v * kLanes)) : Vector{};
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      const int64_t place = r * tile.out_row + v * kLanes;
      Vector x = sums[r][v] * tile.alpha + bias;
      if (tile.residual) x += *reinterpret_cast<const Unaligned*>(tile.residual + place);
      if (tile.bounded) x = x < tile.low ? Vector{} + tile.low : x > tile.high ? Vector{} + tile.high : x;  // keeps NaN
      *reinterpret_cast<Unaligned*>(tile.out + place) = x;
    }
  }
}

/*! Rows of finished sums, `width` floats apart, into the result from column `first` on. */
template <Activation kActivation>
void Finish(const PanelEnd& end, const float* sums, int64_t width, int rows, int64_t row, int64_t first) {
  const Epilogue& epilogue = *end.epilogue;
  const Operands& at = end.at;
  const auto activate = [&](Vector& x) __attribute__((always_inline)) { Apply<kActivation>(epilogue, x); };
  for (int64_t lane = 0; lane < width; lane += kLanes, sums += kLanes) {
    const int64_t column = first + lane;
    if (end.columns - column < kLanes) {
      for (int r = 0; r < rows; ++r) {
        const Vector some = *reinterpret_cast<const Unaligned*>(sums + r * width);
        Store<1>(epilogue, end.columns, at, row + r, column, &some, activate);
      }
      continue;
    }
    const float alpha = static_cast<float>(epilogue.alpha);
    const Vector bias = at.bias ? Vector(*reinterpret_cast<const Unaligned*>(at.bias + column)) : Vector{};
    const int64_t place = row * at.out_row + column;
    const auto finish = [&](bool before, bool after) __attribute__((always_inline)) {
      for (int r = 0; r < rows; ++r) {
        Vector x = *reinterpret_cast<const Unaligned*>(sums + r * width) * alpha + bias, other = {};
        if (before || after) other = *reinterpret_cast<const Unaligned*>(at.residual + place + r * at.out_row);
        if (before) x += other;
        activate(x);
        if (after) {
          __asm__("" : "+x"(x));  // no factor of the activation's goes with the sum: other code has them apart
          x += other;
        }
        *reinterpret_cast<Unaligned*>(at.out + place + r * at.out_row) = x;
      }
    };
    if (epilogue.residual == Residual::kNone) {
      finish(false, false);
    } else {
      epilogue.residual == Residual::kBeforeActivation ? finish(true, false) : finish(false, true);
    }
  }
}

template <int kVectors, int... kBefore>
constexpr std::array<PanelSumsOf, sizeof...(kBefore)> RowsOf(std::integer_sequence<int, kBefore...>) {
  return {Sums<kVectors, kBefore + 1>...};
}
template <int... kBefore>
constexpr std::array<PanelPackOf, sizeof...(kBefore)> PacksOf(std::integer_sequence<int, kBefore...>) {
  return {Pack<kBefore + 1>...};
}
template <int kVectors>
constexpr auto kRowsOf = RowsOf<kVectors>(std::make_integer_sequence<int, kMostRows[kVectors - 1]>());
constexpr auto kPacks = PacksOf(std::make_integer_sequence<int, std::max(kMostRows[0], kMostRows[1])>());

/*! Of so many vectors and rows. */
inline PanelSumsOf SumsFor(int vectors, int rows) { return vectors == 1 ? kRowsOf<1>[rows - 1] : kRowsOf<2>[rows - 1]; }
inline PanelPackOf PackFor(int rows) { return kPacks[rows - 1]; }

/*! By the number of the activation. */
template <int... kActivations>
constexpr std::array<PanelFinishOf, sizeof...(kActivations)> EndsOf(std::integer_sequence<int, kActivations...>) {
  return {Finish<static_cast<Activation>(kActivations)>...};
}
inline PanelFinishOf FinishFor(Activation activation) {
  static constexpr auto kEnds = EndsOf(std::make_integer_sequence<int, kActivations>());
  return kEnds[static_cast<int>(activation)];
}
