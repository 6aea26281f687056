// SPDX-License-Identifier: Apache-2.0
// Parts of a chain of convolutions with the channels last, in whole vectors of kLanes channels: pixels by a panel of a
// weight, and windows for each channel. No guard: conv2d_tile_kernels.cc includes this behind conv2d_tile.h, in a
// namespace and for instructions of its own.

/*! Bounds of sums; NaN stays. */
UIR_INLINE void PutBounded(float* to, Vector sum, float low, float high) {
  const Vector lows = Vector{} + low, highs = Vector{} + high;
  sum = sum < lows ? lows : sum;
  *reinterpret_cast<Unaligned*>(to) = sum > highs ? highs : sum;
}

/*! kPixels pixels by a panel of kVectors vectors. */
template <int kVectors, int kPixels>
UIR_INLINE void SomePixels(const PixelRow& row, int64_t first) {
  Vector sums[kPixels][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vector bias = row.bias ? Vector(*reinterpret_cast<const Unaligned*>(row.bias + v * kLanes)) : Vector{};
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sums[p][v] = bias;
  }
  const float *x = row.x + first * row.depth, *weight = row.weight;
  const int64_t depth = row.depth;
  for (int64_t k = 0; k < depth; ++k, weight += kVectors * kLanes) {
    Vector factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) factors[v] = *reinterpret_cast<const Unaligned*>(weight + v * kLanes);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[p][v] += factors[v] * x[p * depth + k];
    }
  }
  float* to = row.out + first * kVectors * kLanes;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v, to += kLanes) PutBounded(to, sums[p][v], row.low, row.high);
  }
}

/*! A row of pixels. */
template <int kVectors>
void RowOfPixels(const PixelRow& row) {
  constexpr int kMost = kMostPixels[kVectors - 1];
  if (row.pixels < kMost) {
    for (int64_t first = 0; first < row.pixels; ++first) SomePixels<kVectors, 1>(row, first);
    return;
  }
  int64_t first = 0;
  for (; first + kMost <= row.pixels; first += kMost) SomePixels<kVectors, kMost>(row, first);
  if (first < row.pixels) SomePixels<kVectors, kMost>(row, row.pixels - kMost);  // some once more
}

inline PixelRowOf RowOfPixelsFor(int vectors) {
  switch (vectors) {
    case 1:
      return RowOfPixels<1>;
    case 2:
      return RowOfPixels<2>;
    case 3:
      return RowOfPixels<3>;
    default:
      if constexpr (kMostPixels[3] > 0) return RowOfPixels<4>;
      return nullptr;
  }
}

/*! Pixels whose windows share what they read, and the weight. */
constexpr int kWindows = 4;

//! kPixels results side by side from number `first` on. Windows have kColumns columns that lie side by side, kStep of
//! them from one window to the next; 0: as the row says.
template <int kColumns, int kStep, int kPixels>
UIR_INLINE void SomeWindows(const WindowRow& row, int64_t first) {
  const int64_t columns = kColumns > 0 ? kColumns : row.columns, channels = row.channels;
  const int64_t column = kColumns > 0 ? channels : row.column, pixel = kColumns > 0 ? kStep * channels : row.pixel;
  for (int64_t channel = 0; channel < channels; channel += kLanes) {
    const Vector bias = row.bias ? Vector(*reinterpret_cast<const Unaligned*>(row.bias + channel)) : Vector{};
    Vector sums[kPixels];
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) sums[p] = bias;
    const float* weight = row.weight + channel;
    for (int64_t line = 0; line < row.lines; ++line) {
      const float* x = row.x[line] + first * pixel + channel;
      const auto tap = [&](int64_t at) __attribute__((always_inline)) {
        const Vector factor = *reinterpret_cast<const Unaligned*>(weight);
        weight += row.tap;
#pragma GCC unroll 4
        for (int p = 0; p < kPixels; ++p) {
          sums[p] += factor * *reinterpret_cast<const Unaligned*>(x + p * pixel + at * column);
        }
      };
      if constexpr (kColumns > 0) {
#pragma GCC unroll 8
        for (int at = 0; at < kColumns; ++at) tap(at);
      } else {
        for (int64_t at = 0; at < columns; ++at) tap(at);
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) PutBounded(row.out + (first + p) * row.tap + channel, sums[p], row.low, row.high);
  }
}

/*! A row of results. */
template <int kColumns, int kStep>
void Windows(const WindowRow& row) {
  if (row.pixels < kWindows) {
    for (int64_t first = 0; first < row.pixels; ++first) SomeWindows<kColumns, kStep, 1>(row, first);
    return;
  }
  int64_t first = 0;
  for (; first + kWindows <= row.pixels; first += kWindows) SomeWindows<kColumns, kStep, kWindows>(row, first);
  if (first < row.pixels) SomeWindows<kColumns, kStep, kWindows>(row, row.pixels - kWindows);  // some once more
}

/*! For windows of so many columns side by side, `step` of them apart. */
inline WindowsOf WindowsFor(int64_t columns, int64_t step) {
  if (columns == 3 && step == 1) return Windows<3, 1>;
  if (columns == 3 && step == 2) return Windows<3, 2>;
  if (columns == 5 && step == 1) return Windows<5, 1>;
  if (columns == 5 && step == 2) return Windows<5, 2>;
  return Windows<0, 0>;
}
