// SPDX-License-Identifier: Apache-2.0
#include "device/engine/numbers.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "device/simt/include/uir_simt/narrow.h"

namespace uir::engine {

namespace {

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) int64_t FloatOfHalfWide(float* out, const uint16_t* in, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(bits));
  }
  return i;
}

__attribute__((target("avx,f16c"))) int64_t HalfOfFloatWide(uint16_t* out, const float* in, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bits);
  }
  return i;
}

bool HasWide() {
  static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return has;
}
#else
int64_t FloatOfHalfWide(float*, const uint16_t*, int64_t) { return 0; }
int64_t HalfOfFloatWide(uint16_t*, const float*, int64_t) { return 0; }
bool HasWide() { return false; }
#endif

}  // namespace

void FloatOfHalf(float* out, const uint16_t* in, int64_t n) {
  int64_t i = HasWide() ? FloatOfHalfWide(out, in, n) : 0;
  for (; i < n; ++i) out[i] = static_cast<float>(uir_simt::widen(in[i], uir_simt::kHalf));
}

void FloatOfBfloat16(float* out, const uint16_t* in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits = static_cast<uint32_t>(in[i]) << 16;
    std::memcpy(out + i, &bits, 4);
  }
}

void HalfOfFloat(uint16_t* out, const float* in, int64_t n) {
  int64_t i = HasWide() ? HalfOfFloatWide(out, in, n) : 0;
  for (; i < n; ++i) out[i] = static_cast<uint16_t>(uir_simt::narrow(in[i], uir_simt::kHalf, false));
}

void Bfloat16OfFloat(uint16_t* out, const float* in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, in + i, 4);
    bool nan = (bits & 0x7fffffff) > 0x7f800000;
    out[i] = static_cast<uint16_t>(nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

}  // namespace uir::engine
