// SPDX-License-Identifier: Apache-2.0
// A tile of a product of many rows and a constant matrix, some rows by some vectors of columns, in vectors of kLanes
// floats. No guard: panel_kernels.cc includes this in a namespace and for instructions of its own.

#include "library/vector_epilogue.h"

typedef float Four __attribute__((vector_size(16)));
typedef float UnalignedFour __attribute__((vector_size(16), aligned(4)));

/*! kRows rows of `depth` numbers, `row` floats apart, side by side: [depth, kRows]. */
template <int kRows>
void Pack(const float* from, int64_t row, int64_t depth, float* to) {
  int64_t k = 0;
  if constexpr (kRows >= 4) {
    for (; k + 4 <= depth; k += 4, to += 4 * kRows) {
      Four rows[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) rows[r] = *reinterpret_cast<const UnalignedFour*>(from + r * row + k);
      const Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
      const Four b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
      const Four c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
      const Four d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
      const Four turned[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                              __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
#pragma GCC unroll 4
      for (int at = 0; at < 4; ++at) {
        *reinterpret_cast<UnalignedFour*>(to + at * kRows) = turned[at];
#pragma GCC unroll 4
        for (int r = 4; r < kRows; ++r) to[at * kRows + r] = rows[r][at];
      }
    }
  }
  for (; k < depth; ++k, to += kRows) {
    for (int r = 0; r < kRows; ++r) to[r] = from[r * row + k];
  }
}

/*! Sums of a piece's products, after those of the pieces before it where it is not the first. */
template <int kVectors, int kRows>
void Sums(const PanelTile& tile, float* to) {
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (tile.out) __builtin_prefetch(tile.out + r * tile.out_row, 1, 3);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] =
          tile.first ? Vector{} : Vector(*reinterpret_cast<const Unaligned*>(to + r * tile.width + v * kLanes));
    }
  }
  const float *weight = tile.weight, *x = tile.x;
  const char* ahead = tile.ahead;
  const int64_t width = tile.width;
  const auto step = [&]() __attribute__((always_inline)) {
    Vector some[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) some[v] = *reinterpret_cast<const Unaligned*>(weight + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] += some[v] * x[r];
    }
    weight += width, x += kRows;
  };
  int64_t k = 0;
  for (; k < tile.fetches; ++k, ahead += kLine) {
    __builtin_prefetch(ahead, 0, 2);
    step();
  }
#pragma GCC unroll 2
  for (; k < tile.depth; ++k) step();
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Unaligned*>(to + r * tile.width + v * kLanes) = sums[r][v];
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
        if (after) x += other;
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
constexpr auto kRowsOf = RowsOf<kVectors>(std::make_integer_sequence<int, kMostRows>());
constexpr auto kPacks = PacksOf(std::make_integer_sequence<int, kMostRows>());

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
