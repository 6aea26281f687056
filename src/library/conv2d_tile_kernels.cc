// SPDX-License-Identifier: Apache-2.0
#include "library/conv2d_tile_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/rounding.h"
#include "library/cpu_features.h"

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

#ifdef UIR_TILES
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
/*! Of vectors of 16 floats, of 32 registers; Winograd's way was not measured there: what caches of servers give at
 * least, and a margin for what the estimate does not know. */
constexpr int kMostPixels16[kMostVectors] = {8, 8, 8, 6};
constexpr int kMostBeside16[kMostBesidePixels] = {1, 1, 1, 1};
constexpr int kPanel16 = 64;
constexpr TileRule kRule16 = {false, {{1, 128}, {512, 256}}, kNever, 2, 0};
/*! Where panels multiply many rows. */
constexpr TileRule kRuleOfPanels = {false, {{1, 128}, {512, 256}}, kNever, 6, 97};
constexpr double kBeyond16 = 10, kMargin16 = 1.2;

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
namespace avx512 {
constexpr int kLanes = 16, kPanel = kPanel16;
constexpr const int *kMostPixels = kMostPixels16, *kMostBeside = kMostBeside16;
#define UIR_ESTIMATE(x) __builtin_ia32_rcp14ps512_mask(x, Vector{}, static_cast<uint16_t>(-1))
#include "library/conv2d_tile.h"
// behind it
#include "library/conv2d_chain_tile.h"
#include "library/conv2d_winograd_tile.h"
#include "library/tile_ends.h"
#include "library/transpose_tile.h"
#undef UIR_ESTIMATE
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8, kPanel = 16;
constexpr int kMostPixels[kMostVectors] = {8, 6, 4, 0};  // of 16 registers 12 hold sums
constexpr int kMostBeside[kMostBesidePixels] = {4, 2, 2, 3};
#include "library/conv2d_tile.h"
// behind it
#include "library/conv2d_chain_tile.h"
#include "library/conv2d_winograd_tile.h"
#include "library/tile_ends.h"
#include "library/transpose_tile.h"
constexpr TileRule kRule = {true, {{1, 64}, {128, 512}}, 256, 33, 193};
}  // namespace avx2
namespace pairs {  // of avx2's vectors, for tests of what avx512 has
constexpr int kLanes = 16, kPanel = kPanel16;
constexpr const int *kMostPixels = kMostPixels16, *kMostBeside = kMostBeside16;
#include "library/conv2d_tile.h"
// behind it
#include "library/conv2d_chain_tile.h"
#include "library/conv2d_winograd_tile.h"
#include "library/tile_ends.h"
#include "library/transpose_tile.h"
}  // namespace pairs
#pragma GCC pop_options

/*! The code of a namespace. */
#define UIR_CODE(name)                                                                                     \
  name::SumsFor, name::BesideFor, name::FinishFor, name::SpreadPatch, name::PatchSumsFor, name::GatherFor, \
      name::Transpose, name::RowOfPixelsFor, name::WindowsFor

/*! The best first. */
const std::vector<TileKernels>& Tables() {
  static const auto* tables = [] {
    auto* made = new std::vector<TileKernels>();
    const int64_t cache = SecondCacheBytes();
    if (HasAvx512()) {
      const CoreRates core = {16, cache, kBeyond16, kMargin16};
      const TileRule& rule = HasAmdAvx512() ? kRuleOfPanels : kRule16;
      made->push_back({"avx512", 16, kPanel16, 64, kMostPixels16, kMostBeside16, false, rule, core, UIR_CODE(avx512)});
    }
    if (HasAvx2()) {
      const CoreRates core = {8, cache, 32, 1.05};
      made->push_back(
          {"avx2", 8, avx2::kPanel, 24, avx2::kMostPixels, avx2::kMostBeside, true, avx2::kRule, core, UIR_CODE(avx2)});
      const CoreRates wide = {16, cache, kBeyond16, kMargin16};
      made->push_back(
          {"avx512 in pairs", 16, kPanel16, 64, kMostPixels16, kMostBeside16, false, kRule16, wide, UIR_CODE(pairs)});
    }
    return made;
  }();
  return *tables;
}
#undef UIR_CODE

/*! Which of them new plans use. */
std::atomic<size_t> chosen{0};

}  // namespace
#endif

const TileKernels* TileKernelsHere() {
#ifdef UIR_TILES
  if (!Tables().empty()) return &Tables()[chosen];
#endif
  return nullptr;
}

std::vector<std::string> TileVectors() {
  std::vector<std::string> names;
#ifdef UIR_TILES
  for (const TileKernels& table : Tables()) names.push_back(table.name);
#endif
  return names;
}

bool SetTileVectors(const std::string& name) {
  const std::vector<std::string> names = TileVectors();
  const auto found = std::find(names.begin(), names.end(), name);
#ifdef UIR_TILES
  if (found != names.end()) chosen = static_cast<size_t>(found - names.begin());
#endif
  return found != names.end();
}

}  // namespace uir::library
