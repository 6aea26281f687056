// SPDX-License-Identifier: Apache-2.0
#include "library/winograd_cost.h"

#include <unistd.h>

#include <algorithm>

#include "base/rounding.h"

namespace uir::library {
namespace {

/*! Multiply-adds of vectors in a cycle, as loops of products reach them. */
constexpr double kRate = 1.8;
/*! Cycles of a patch for each vector of channels of the input and of the result (docs/library-operators.md). */
constexpr double kSpread = 40, kGather = 70;
/*! Bytes in a cycle from memory, for a weight that no cache keeps from call to call; and from which size on. */
constexpr double kFromMemory = 2;
constexpr int64_t kKept = 4 << 20;
/*! What a second cache may be taken for. */
constexpr int64_t kLeastCache = 256 << 10, kUsualCache = 512 << 10, kMostCache = 2 << 20;
/*! Patches of a band, at least, and at most for each float of a vector. */
constexpr int64_t kLeastBand = 12, kMostBand = 3;
/*! Bytes of 16 positions. */
constexpr int64_t kPatchBytes = 16 * static_cast<int64_t>(sizeof(float));

}  // namespace

int64_t SecondCacheBytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  static const int64_t bytes = 0;
#endif
  return bytes > 0 ? std::clamp(bytes, kLeastCache, kMostCache) : kUsualCache;
}

int64_t WinogradBand(int64_t inputs, const CoreRates& core) {
  const int64_t half = core.second_cache / 2;
  return std::clamp(half / (RoundUp<int64_t>(inputs, core.lanes) * kPatchBytes), kLeastBand, kMostBand * core.lanes);
}

double WinogradGain(const Conv2dAttrs& s, const CoreRates& core) {
  const auto real = [](int64_t number) { return static_cast<double>(number); };
  const int64_t patches = s.n * CeilDiv<int64_t>(s.oh, 2) * CeilDiv<int64_t>(s.ow, 2);
  const double inputs = real(CeilDiv<int64_t>(s.i, core.lanes)), outputs = real(CeilDiv<int64_t>(s.o, core.lanes));
  const double pairs = real(s.i) * outputs;  // multiply-adds of one number of a patch
  const double direct = 9 * pairs * real(s.n * s.oh * s.ow) / kRate;
  const int64_t weight = kPatchBytes * s.i * s.o, longer = weight - 9 * static_cast<int64_t>(sizeof(float)) * s.i * s.o;
  double cycles = real(patches) * (16 * pairs / kRate + inputs * kSpread + outputs * kGather);
  if (weight > core.second_cache / 2) {
    cycles += real(CeilDiv(patches, WinogradBand(s.i, core)) * weight) / core.beyond;
  }
  if (weight > kKept) cycles += real(longer) / kFromMemory;
  return direct / cycles;
}

}  // namespace uir::library
