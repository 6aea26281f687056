// SPDX-License-Identifier: Apache-2.0
#include "library/panel_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "library/conv2d_tile_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_PANELS 1
#include <immintrin.h>
#endif

namespace uir::library {

#ifdef UIR_PANELS
namespace {

constexpr int kActivations = static_cast<int>(Activation::kHardSwish) + 1;

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8, kMostRows = 6;  // of 16 registers 12 hold sums
#include "library/panel_tile.h"
constexpr PanelKernels kKernels = {"avx2", kLanes, 2, kMostRows, kSteps, PackFor, SumsFor, FinishFor};
}  // namespace avx2
#pragma GCC pop_options

}  // namespace
#endif

const PanelKernels* PanelKernelsHere() {
#ifdef UIR_PANELS
  // with AVX512 not measured
  if (__builtin_cpu_supports("avx512f")) return nullptr;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2::kKernels;
#endif
  return nullptr;
}

}  // namespace uir::library
