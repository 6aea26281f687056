// SPDX-License-Identifier: Apache-2.0
// A tile of a product of pixels and channels, some pixels by some vectors of output channels, in vectors of kLanes
// floats. No guard: conv2d_tile_kernels.cc includes this in a namespace and for instructions of its own.

#include "library/vector_math.h"

/*! How far ahead of one pixel's products its weight is asked for, in vectors. */
constexpr int kAhead = 4 * kLine / static_cast<int>(sizeof(float));

/*! Sums of kVectors vectors of a tile, from number kFirst of its kAll on. They begin with the bias and take one product
 * after the other, tap by tap. Where what is left is at most a residual and bounds, they end in the result; else in
 * `to`, for `Finish`. Vectors are kWide of a panel of the weight, or of each of several panels beside each other. */
template <int kWide, int kAll, int kFirst, int kVectors, int kPixels>
UIR_INLINE void SomeSums(const Tile& tile, float* to) {
  Vector sums[kPixels][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int lane = (kFirst + v) * kLanes;
    Vector bias = {};
    if (tile.bias) Get(bias, tile.bias + lane, tile.channels - lane);
    for (int p = 0; p < kPixels; ++p) sums[p][v] = bias;
  }
  const Unaligned* weight = reinterpret_cast<const Unaligned*>(tile.weight);
  const int64_t apart = kAll == kWide ? 0 : tile.apart / kLanes;
  const char* ahead = tile.ahead;
  const float* x[kPixels];
  const auto step = [&](int64_t k) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
      for (int v = kFirst; v < kFirst + kVectors; ++v) {
        sums[p][v - kFirst] += weight[v / kWide * apart + v % kWide] * x[p][k];
      }
    }
    weight += kWide;
  };
  for (int64_t tap = 0; tap < tile.tap_count; ++tap) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      x[p] = tile.inside[p] >> tap & 1 ? tile.x + (tile.windows[p] + tile.taps[tap]) : tile.zeros;
    }
    int64_t k = 0;
    for (; k < tile.fetches; ++k, ahead += kLine) {
      __builtin_prefetch(ahead, 0, 2);
      step(k);
    }
    for (; k < tile.depth; ++k) {
      if constexpr (kPixels == 1 && kAll == kWide) {  // which waits for nothing but the weight
        for (int v = 0; v < kVectors; ++v) __builtin_prefetch(weight + kAhead + v);
      }
      step(k);
    }
  }
  const bool ends = tile.bounded && tile.channels == kAll * kLanes;
  const Vector low = Vector{} + tile.low, high = Vector{} + tile.high;
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vector sum = sums[p][v];
      if (!ends) {
        *reinterpret_cast<Unaligned*>(to + (p * kAll + kFirst + v) * kLanes) = sum;
        continue;
      }
      const int64_t at = p * tile.row + (kFirst + v) * kLanes;
      if (tile.residual) sum += *reinterpret_cast<const Unaligned*>(tile.residual + at);
      sum = sum < low ? low : sum;  // keep NaN
      sum = sum > high ? high : sum;
      *reinterpret_cast<Unaligned*>(tile.out + at) = sum;
    }
  }
}

/*! Sums of a tile: of several panels in two halves where registers do not hold all. */
template <int kPanels, int kWide, int kPixels>
void Sums(const Tile& tile, float* to) {
  constexpr int kVectors = kPanels * kWide;
  if constexpr (kPanels == 1 || kVectors * kPixels <= kSumsBeside) {
    SomeSums<kWide, kVectors, 0, kVectors, kPixels>(tile, to);
  } else {
    constexpr int kHalf = kVectors / 2;
    SomeSums<kWide, kVectors, 0, kHalf, kPixels>(tile, to);
    SomeSums<kWide, kVectors, kHalf, kVectors - kHalf, kPixels>(tile, to);
  }
}

/*! Keeps NaN. */
UIR_INLINE void Bound(Vector& x, float low, float high) {
  x = x < low ? Vector{} + low : x;
  x = x > high ? Vector{} + high : x;
}

template <Activation kActivation>
UIR_INLINE void Apply(Vector& x, float first, float second) {
  if constexpr (kActivation == Activation::kRelu) x = x < 0.0f ? Vector{} : x;
  if constexpr (kActivation == Activation::kLeakyRelu) x = x < 0.0f ? first * x : x;
  if constexpr (kActivation == Activation::kClip) Bound(x, first, second);
  if constexpr (kActivation == Activation::kTanh) Tanh(x);
  if constexpr (kActivation == Activation::kSigmoid) Sigmoid(x);
  if constexpr (kActivation == Activation::kSilu) {
    Vector gate = x;
    Sigmoid(gate);
    x *= gate;
  }
  if constexpr (kActivation == Activation::kHardSigmoid || kActivation == Activation::kHardSwish) {
    Vector gate = first * x + second;
    Bound(gate, 0.0f, 1.0f);
    x = kActivation == Activation::kHardSwish ? x * gate : gate;
  }
}

/*! Residual and activation of `count` sums of neighbours, and their place in the result. */
template <Activation kActivation>
UIR_INLINE void FinishVector(const Epilogue& epilogue, const Vector& sums, const float* residual, float* out,
                             int64_t at, int64_t count) {
  Vector x = sums, other = {};
  if (epilogue.residual != Residual::kNone) Get(other, residual + at, count);
  if (epilogue.residual == Residual::kBeforeActivation) x += other;
  Apply<kActivation>(x, epilogue.parameters[0], epilogue.parameters[1]);
  if (epilogue.residual == Residual::kAfterActivation) x += other;
  Put(out + at, x, count);
}

/*! Of `pixels` rows of sums. */
template <Activation kActivation>
void Finish(const Tile& tile, const float* sums, int vectors, int pixels) {
  for (int p = 0; p < pixels; ++p, sums += vectors * kLanes) {
    for (int64_t at = 0; at < tile.channels; at += kLanes) {
      FinishVector<kActivation>(*tile.epilogue, Vector(*reinterpret_cast<const Unaligned*>(sums + at)), tile.residual,
                                tile.out, p * tile.row + at, tile.channels - at);
    }
  }
}

/*! Of one pixel, of two, and so on. */
template <int kVectors, int... kBefore>
constexpr std::array<SumsOf, sizeof...(kBefore)> PixelsOf(std::integer_sequence<int, kBefore...>) {
  return {Sums<1, kVectors, kBefore + 1>...};
}

template <int kVectors>
constexpr auto kPixelsOf = PixelsOf<kVectors>(std::make_integer_sequence<int, kMostPixels[kVectors - 1]>());

inline SumsOf SumsFor(int vectors, int pixels) {
  switch (vectors) {
    case 1:
      return kPixelsOf<1>[pixels - 1];
    case 2:
      return kPixelsOf<2>[pixels - 1];
    case 3:
      return kPixelsOf<3>[pixels - 1];
    default:
      if constexpr (kMostPixels[3] > 0) return kPixelsOf<4>[pixels - 1];
      return nullptr;
  }
}

/*! Vectors of a panel that lies beside others of its width. */
constexpr int kPanelVectors = kPanel / kLanes;
/*! Of two panels, of three, and so on. */
template <int kPixels, int... kBefore>
constexpr std::array<SumsOf, sizeof...(kBefore)> BesideOf(std::integer_sequence<int, kBefore...>) {
  return {Sums<kBefore + 2, kPanelVectors, kPixels>...};
}
template <int kPixels>
constexpr auto kBesideOf = BesideOf<kPixels>(std::make_integer_sequence<int, kMostBeside[kPixels - 1] - 1>());

inline SumsOf BesideFor(int panels, int pixels) {
  switch (pixels) {
    case 1:
      if constexpr (kMostBeside[0] > 1) return kBesideOf<1>[panels - 2];
      return nullptr;
    case 2:
      if constexpr (kMostBeside[1] > 1) return kBesideOf<2>[panels - 2];
      return nullptr;
    case 3:
      if constexpr (kMostBeside[2] > 1) return kBesideOf<3>[panels - 2];
      return nullptr;
    default:
      if constexpr (kMostBeside[3] > 1) return kBesideOf<4>[panels - 2];
      return nullptr;
  }
}
