// SPDX-License-Identifier: Apache-2.0
#include "library/panel_attention.h"

#include "library/panel_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_PANELS 1
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "library/attention_parts.h"
#include "library/conv2d_tile_kernels.h"
#include "library/cpu_features.h"
#include "library/fetch_ahead.h"
#include "library/kernel.h"
#include "library/winograd_cost.h"

namespace uir::library {

#ifdef UIR_PANELS
namespace {

/*! Keys whose scores are computed at a time. */
constexpr int kKeysAtOnce = 256;
/*! Floats from row to row up to which values are read where they lie. */
constexpr int64_t kNearRow = 256;
/*! Below which squares of lengths are, so that scores are numbers. */
constexpr float kSquareLimit = 0x1p110f;
//! Exponents of two that need no maximum taken off: weights, their sums, and products with values are normal numbers.
constexpr float kMostBounded = 32.0f;
/*! Rows and keys from which on panels pay. */
constexpr int64_t kLeastRows = 32, kLeastKeys = 16;

/*! Bytes of keys and values that stay in the second cache. */
int64_t BlockBytes() { return SecondCacheBytes() / 2; }

//! Of each width kKeyRows is the keys of a tile of scores, kMostValues the numbers of a value in a tile, at most: of
//! sums of one head's length, four keys by two vectors of eight take 99 % of what a core multiplies and adds, six keys
//! 94; eight by two of sixteen 99. kWeighsBeside: whether registers are left for weights while scores are computed.
//! kLaysOutValues: tiles of eight read a line of values too often to read them where they lie.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
#define UIR_VECTORS 512
namespace avx512 {
constexpr int kLanes = 16, kVectors = 2, kKeyRows = 8, kMostValues = 8;
constexpr bool kWeighsBeside = true, kLaysOutValues = false;
#include "library/panel_attention_rows.h"
}  // namespace avx512
#undef UIR_VECTORS
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define UIR_VECTORS 256
namespace avx2 {
constexpr int kLanes = 8, kVectors = 2, kKeyRows = 4, kMostValues = 6;
constexpr bool kWeighsBeside = false, kLaysOutValues = true;
#include "library/panel_attention_rows.h"
}  // namespace avx2
#undef UIR_VECTORS
#pragma GCC pop_options

/*! One width of vectors. */
struct Code {
  const char* name;
  bool (*run)(const AttentionAttrs& attrs, const AttentionUnits& units, int threads);
};

const std::vector<Code>& All() {
  static const auto* all = [] {
    auto* made = new std::vector<Code>();
    if (HasAmdAvx512()) made->push_back({"avx512", avx512::RunRows});
    if (PanelKernelsOfEight()) made->push_back({"avx2", avx2::RunRows});
    return made;
  }();
  return *all;
}

std::atomic<size_t> chosen{0};

}  // namespace
#endif

bool PanelsPay(const AttentionAttrs& attrs, int64_t rows) {
#ifdef UIR_PANELS
  return rows >= kLeastRows && attrs.n >= kLeastKeys && attrs.d > 0 && attrs.e > 0 &&
         attrs.n < std::numeric_limits<int32_t>::max() - kKeysAtOnce && !All().empty();
#else
  return false;
#endif
}

bool RunPanelAttention(const AttentionAttrs& attrs, const AttentionUnits& units, int threads) {
#ifdef UIR_PANELS
  return All()[chosen].run(attrs, units, threads);
#else
  return false;
#endif
}

std::vector<std::string> AttentionVectors() {
  std::vector<std::string> names;
#ifdef UIR_PANELS
  for (const Code& code : All()) names.push_back(code.name);
#endif
  return names;
}

bool SetAttentionVectors(const std::string& name) {
  const std::vector<std::string> names = AttentionVectors();
  const auto found = std::find(names.begin(), names.end(), name);
#ifdef UIR_PANELS
  if (found != names.end()) chosen = static_cast<size_t>(found - names.begin());
#endif
  return found != names.end();
}

}  // namespace uir::library
