// SPDX-License-Identifier: Apache-2.0
// The two transformations of Winograd's F(2x2, 3x3), in vectors of kLanes floats. No guard: conv2d_tile_kernels.cc
// includes this behind conv2d_tile.h in a namespace and for instructions of its own.

/*! Four numbers as the products want them: of the input's rows, then of its columns. */
UIR_INLINE void Spread(Vector& a, Vector& b, Vector& c, Vector& d) {
  const Vector first = a - c, last = b - d, sum = b + c;
  c -= b;
  a = first, b = sum, d = last;
}

/*! A vector of channels of the 4x4 pixels of a patch, into its 16 positions. */
UIR_INLINE void SpreadVector(const float* const* pixels, int64_t at, int64_t count, float* to, int64_t position) {
  Vector x[16];
  for (int p = 0; p < 16; ++p) Get(x[p], pixels[p] + at, count);
  for (int column = 0; column < 4; ++column) Spread(x[column], x[4 + column], x[8 + column], x[12 + column]);
  for (int row = 0; row < 4; ++row) {
    Vector* const r = x + 4 * row;
    Spread(r[0], r[1], r[2], r[3]);
    for (int p = 0; p < 4; ++p) *reinterpret_cast<Unaligned*>(to + (4 * row + p) * position + at) = r[p];
  }
}

/*! All channels of a patch; behind them zeros up to whole vectors. */
inline void SpreadPatch(const float* const* pixels, int64_t channels, float* to, int64_t position) {
  int64_t at = 0;
  for (; at + kLanes <= channels; at += kLanes) SpreadVector(pixels, at, kLanes, to, position);
  if (at < channels) SpreadVector(pixels, at, channels - at, to, position);
}

/*! Sums of some patches at one position by some vectors of output channels. */
template <int kVectors, int kPatches>
void PatchSums(const float* x, int64_t row, const float* weights, int64_t depth, float* to) {
  Vector sums[kPatches][kVectors] = {};
  const Unaligned* weight = reinterpret_cast<const Unaligned*>(weights);
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, weight += kVectors) {
#pragma GCC unroll 16
    for (int p = 0; p < kPatches; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[p][v] += weight[v] * x[p * row + k];
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPatches; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Unaligned*>(to + (p * kVectors + v) * kLanes) = sums[p][v];
  }
}

/*! Up to a vector of channels of the 2x2 results of a patch. */
template <Activation kActivation>
UIR_INLINE void GatherVector(const Patch& patch, const Epilogue& epilogue, int64_t at, int64_t count) {
  const float* sums = patch.sums + at;
  const int64_t position = patch.position;
  Vector upper[4], lower[4], bias = {};
  if (patch.bias) Get(bias, patch.bias + at, count);
#pragma GCC unroll 4
  for (int column = 0; column < 4; ++column) {
    const Vector first = *reinterpret_cast<const Unaligned*>(sums + column * position);
    const Vector second = *reinterpret_cast<const Unaligned*>(sums + (4 + column) * position);
    const Vector third = *reinterpret_cast<const Unaligned*>(sums + (8 + column) * position);
    const Vector fourth = *reinterpret_cast<const Unaligned*>(sums + (12 + column) * position);
    upper[column] = first + second + third;
    lower[column] = second - third - fourth;
  }
  const auto put = [&](const Vector& sum, int64_t place) __attribute__((always_inline)) {
    FinishVector<kActivation>(epilogue, sum + bias, patch.residual, patch.out, place + at, count);
  };
  put(upper[0] + upper[1] + upper[2], 0);
  if (patch.columns > 1) put(upper[1] - upper[2] - upper[3], patch.pixel);
  if (patch.rows == 1) return;
  put(lower[0] + lower[1] + lower[2], patch.line);
  if (patch.columns > 1) put(lower[1] - lower[2] - lower[3], patch.line + patch.pixel);
}

/*! The results of the sums of 16 positions, with what follows them, in those places that the image has. */
template <Activation kActivation>
void GatherPatch(const Patch& given) {
  const Patch patch = given;  // which no store changes
  const Epilogue epilogue = *given.epilogue;
  int64_t at = 0;
  for (; at + kLanes <= patch.channels; at += kLanes) GatherVector<kActivation>(patch, epilogue, at, kLanes);
  if (at < patch.channels) GatherVector<kActivation>(patch, epilogue, at, patch.channels - at);
}

/*! Of one patch, of two, and so on. */
template <int kVectors, int... kBefore>
constexpr std::array<PatchSumsOf, sizeof...(kBefore)> PatchesOf(std::integer_sequence<int, kBefore...>) {
  return {PatchSums<kVectors, kBefore + 1>...};
}

template <int kVectors>
constexpr auto kPatchesOf = PatchesOf<kVectors>(std::make_integer_sequence<int, kMostPixels[kVectors - 1]>());

inline PatchSumsOf PatchSumsFor(int vectors, int patches) {
  switch (vectors) {
    case 1:
      return kPatchesOf<1>[patches - 1];
    case 2:
      return kPatchesOf<2>[patches - 1];
    case 3:
      return kPatchesOf<3>[patches - 1];
    default:
      if constexpr (kMostPixels[3] > 0) return kPatchesOf<4>[patches - 1];
      return nullptr;
  }
}
