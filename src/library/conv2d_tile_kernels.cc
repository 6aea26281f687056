// SPDX-License-Identifier: Apache-2.0
#include "library/conv2d_tile_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/rounding.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_TILES 1
#endif
#define UIR_INLINE inline __attribute__((always_inline))

namespace uir::library {

bool TileRule::Holds(const Conv2dAttrs& s) const {
  const bool pads = s.padding[0] || s.padding[1] || s.padding[2] || s.padding[3];
  const int64_t pixels = s.n * s.oh * s.ow, products = s.i * s.kh * s.kw;
  if (!windows && (s.kh * s.kw > 1 || pads)) return false;
  if (s.epilogue.residual == Residual::kAfterActivation && products >= late) return true;
  const auto holds = [&](const TileLimit& limit) { return products >= limit.products && pixels < limit.pixels; };
  return holds(limits[0]) || holds(limits[1]);
}

bool WinogradRule::Holds(const Conv2dAttrs& s) const {
  const int64_t count = s.n * CeilDiv<int64_t>(s.oh, 2) * CeilDiv<int64_t>(s.ow, 2);
  return std::min(s.i, s.o) >= channels && count >= patches && s.i * s.o <= weights * count;
}

#ifdef UIR_TILES
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
namespace avx512 {
constexpr int kLanes = 16;
constexpr int kMostPixels[kMostVectors] = {8, 8, 8, 6};
#define UIR_ESTIMATE(x) __builtin_ia32_rcp14ps512_mask(x, Vector{}, static_cast<uint16_t>(-1))
#include "library/conv2d_tile.h"
#include "library/conv2d_winograd_tile.h"
#include "library/tile_ends.h"
#undef UIR_ESTIMATE
constexpr TileRule kRule = {false, {{1, 128}, {512, 256}}, kNever, 2};
constexpr WinogradRule kWinograd = {kNever, kNever, 0};  // not measured
constexpr TileKernels kKernels = {"avx512",  kLanes,  64,        64,          kMostPixels,  false,    kRule,
                                  kWinograd, SumsFor, FinishFor, SpreadPatch, PatchSumsFor, GatherFor};
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8;
constexpr int kMostPixels[kMostVectors] = {8, 6, 4, 0};  // of 16 registers 12 hold sums
#include "library/conv2d_tile.h"
#include "library/conv2d_winograd_tile.h"
#include "library/tile_ends.h"
constexpr TileRule kRule = {true, {{1, 64}, {128, 512}}, 256, 33};
constexpr WinogradRule kWinograd = {16, 4, 8192};
constexpr TileKernels kKernels = {"avx2",    kLanes,  16,        24,          kMostPixels,  true,     kRule,
                                  kWinograd, SumsFor, FinishFor, SpreadPatch, PatchSumsFor, GatherFor};
}  // namespace avx2
#pragma GCC pop_options

}  // namespace
#endif

const TileKernels* TileKernelsHere() {
#ifdef UIR_TILES
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return &avx512::kKernels;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2::kKernels;
#endif
  return nullptr;
}

}  // namespace uir::library
