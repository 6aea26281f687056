// SPDX-License-Identifier: Apache-2.0
#include "library/half_floats.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_WIDTHS 1
#include <immintrin.h>
#endif

#include <cstring>

#include "library/cpu_features.h"
#include "library/quantized_layout.h"

namespace uir::library {
namespace {

#ifdef UIR_WIDTHS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,f16c")
#define UIR_VECTORS 512
namespace avx512 {
constexpr int kLanes = 16;
#include "library/vector_math.h"
//
#include "library/half_vectors.h"
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#undef UIR_VECTORS
#define UIR_VECTORS 256
namespace avx2 {
constexpr int kLanes = 8;
#include "library/vector_math.h"
//
#include "library/half_vectors.h"
}  // namespace avx2
#pragma GCC pop_options
#undef UIR_VECTORS
#endif
#define UIR_VECTORS 0
namespace any {
constexpr int kLanes = 4;
#include "library/vector_math.h"
//
#include "library/half_vectors.h"
}  // namespace any

struct Conversions {
  void (*widen)(DType, const char*, int64_t, float*);
  void (*narrow)(DType, const float*, float, int64_t, char*);
};

const Conversions& Best() {
  static const Conversions best = [] {
#ifdef UIR_WIDTHS
    if (HasAvx512()) {
      return Conversions{avx512::Widened, avx512::Narrowed};
    }
    if (HasHalves()) return Conversions{avx2::Widened, avx2::Narrowed};
#endif
    return Conversions{any::Widened, any::Narrowed};
  }();
  return best;
}

}  // namespace

bool HasHalves() {
#ifdef UIR_WIDTHS
  return HasAvx2() && __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

void ToFloats(DType type, const char* from, int64_t count, float* to) { Best().widen(type, from, count, to); }

void FromFloats(DType type, const float* from, float factor, int64_t count, char* to) {
  Best().narrow(type, from, factor, count, to);
}

}  // namespace uir::library
