// SPDX-License-Identifier: Apache-2.0
#include "library/panel_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "library/conv2d_tile_kernels.h"
#include "library/cpu_features.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_PANELS 1
#include <immintrin.h>
#endif

namespace uir::library {

#ifdef UIR_PANELS
namespace {

constexpr int kActivations = static_cast<int>(Activation::kHardSwish) + 1;

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,prfchw")
#define UIR_VECTORS 512
namespace avx512 {
constexpr int kLanes = 16, kMostRows[2] = {24, 12};  // of 32 registers 24 hold sums
#include "library/panel_tile.h"
constexpr PanelKernels kOfBlocks = {"avx512", kLanes, 1, kMostRows[0], kSteps, PackFor, SumsFor, FinishFor};
constexpr PanelKernels kKernels = {"avx512", kLanes, 2, kMostRows[1], kSteps, PackFor, SumsFor, FinishFor};
}  // namespace avx512
#undef UIR_VECTORS
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define UIR_VECTORS 256
namespace avx2 {
constexpr int kLanes = 8, kMostRows[2] = {6, 6};  // of 16 registers 12 hold sums
#include "library/panel_tile.h"
constexpr PanelKernels kKernels = {"avx2", kLanes, 2, kMostRows[1], kSteps, PackFor, SumsFor, FinishFor};
}  // namespace avx2
#undef UIR_VECTORS
#pragma GCC pop_options

}  // namespace
#endif

const PanelKernels* PanelKernelsOfEight() {
#ifdef UIR_PANELS
  if (HasAvx2() && (!HasAvx512() || HasAmdAvx512())) return &avx2::kKernels;
#endif
  return nullptr;
}

const PanelKernels* PanelKernelsHere() {
#ifdef UIR_PANELS
  if (HasAvx512()) {
    // weights lie in panels for the vectors that tiles have
    return HasAmdAvx512() && TileKernelsHere()->lanes == avx512::kLanes ? &avx512::kKernels : nullptr;
  }
#endif
  return PanelKernelsOfEight();
}

const PanelKernels* BlockKernelsHere() {
#ifdef UIR_PANELS
  if (HasAvx512()) return &avx512::kOfBlocks;
#endif
  return PanelKernelsOfEight();
}

}  // namespace uir::library
