// SPDX-License-Identifier: Apache-2.0
// Scalar functions of CUDA that C's library lacks or names otherwise.
//
// Conversions to integers saturate and take NaN to 0, as those of the device do.
#pragma once

#include "keywords.h"
#include "narrow.h"

// glibc's headers declare names such as __expf for their own use.
#define __expf uir_simt_expf
#define __logf uir_simt_logf
#define __log2f uir_simt_log2f
#define __exp10f uir_simt_exp10f
#define __powf uir_simt_powf
#define __sinf uir_simt_sinf
#define __cosf uir_simt_cosf
#define __tanf uir_simt_tanf
UIR_SIMT_INLINE float uir_simt_expf(float x) { return expf(x); }
UIR_SIMT_INLINE float uir_simt_logf(float x) { return logf(x); }
UIR_SIMT_INLINE float uir_simt_log2f(float x) { return log2f(x); }
UIR_SIMT_INLINE float uir_simt_exp10f(float x) { return powf(10.0f, x); }
UIR_SIMT_INLINE float uir_simt_powf(float x, float y) { return powf(x, y); }
UIR_SIMT_INLINE float uir_simt_sinf(float x) { return sinf(x); }
UIR_SIMT_INLINE float uir_simt_cosf(float x) { return cosf(x); }
UIR_SIMT_INLINE float uir_simt_tanf(float x) { return tanf(x); }
UIR_SIMT_INLINE float __fdividef(float x, float y) { return x / y; }
UIR_SIMT_INLINE float __frcp_rn(float x) { return 1.0f / x; }
UIR_SIMT_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
UIR_SIMT_INLINE float __frsqrt_rn(float x) { return float(1.0 / sqrt(double(x))); }
UIR_SIMT_INLINE float __fdiv_rn(float x, float y) { return x / y; }
UIR_SIMT_INLINE float __fadd_rn(float x, float y) { return x + y; }
UIR_SIMT_INLINE float __fsub_rn(float x, float y) { return x - y; }
UIR_SIMT_INLINE float __fmul_rn(float x, float y) { return x * y; }
UIR_SIMT_INLINE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
UIR_SIMT_INLINE double __dadd_rn(double x, double y) { return x + y; }
UIR_SIMT_INLINE double __dsub_rn(double x, double y) { return x - y; }
UIR_SIMT_INLINE double __dmul_rn(double x, double y) { return x * y; }
UIR_SIMT_INLINE double __ddiv_rn(double x, double y) { return x / y; }
UIR_SIMT_INLINE double __dsqrt_rn(double x) { return sqrt(x); }
UIR_SIMT_INLINE double __drcp_rn(double x) { return 1.0 / x; }
UIR_SIMT_INLINE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
UIR_SIMT_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
UIR_SIMT_INLINE float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
UIR_SIMT_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }

#define UIR_SIMT_MIN_MAX(type)                                       \
  UIR_SIMT_INLINE type min(type a, type b) { return b < a ? b : a; } \
  UIR_SIMT_INLINE type max(type a, type b) { return a < b ? b : a; }
UIR_SIMT_MIN_MAX(int)
UIR_SIMT_MIN_MAX(unsigned)
UIR_SIMT_MIN_MAX(long)
UIR_SIMT_MIN_MAX(unsigned long)
UIR_SIMT_MIN_MAX(long long)
UIR_SIMT_MIN_MAX(unsigned long long)
#undef UIR_SIMT_MIN_MAX

// The overloads of CUDA C++ for float, beside C's functions of double.
#define UIR_SIMT_OF_FLOAT(name) \
  UIR_SIMT_INLINE float name(float x) { return name##f(x); }
UIR_SIMT_OF_FLOAT(sqrt)
UIR_SIMT_OF_FLOAT(rsqrt)
UIR_SIMT_OF_FLOAT(exp)
UIR_SIMT_OF_FLOAT(exp2)
UIR_SIMT_OF_FLOAT(log)
UIR_SIMT_OF_FLOAT(log2)
UIR_SIMT_OF_FLOAT(sin)
UIR_SIMT_OF_FLOAT(cos)
UIR_SIMT_OF_FLOAT(tan)
UIR_SIMT_OF_FLOAT(tanh)
UIR_SIMT_OF_FLOAT(erf)
UIR_SIMT_OF_FLOAT(fabs)
UIR_SIMT_OF_FLOAT(floor)
UIR_SIMT_OF_FLOAT(ceil)
UIR_SIMT_OF_FLOAT(trunc)
UIR_SIMT_OF_FLOAT(round)
UIR_SIMT_OF_FLOAT(rint)
#undef UIR_SIMT_OF_FLOAT
UIR_SIMT_INLINE float pow(float x, float y) { return powf(x, y); }
UIR_SIMT_INLINE float fmod(float x, float y) { return fmodf(x, y); }
UIR_SIMT_INLINE float fma(float x, float y, float z) { return fmaf(x, y, z); }
UIR_SIMT_INLINE float abs(float x) { return fabsf(x); }
UIR_SIMT_INLINE double abs(double x) { return fabs(x); }

UIR_SIMT_INLINE float min(float a, float b) { return fminf(a, b); }
UIR_SIMT_INLINE float max(float a, float b) { return fmaxf(a, b); }
UIR_SIMT_INLINE double min(double a, double b) { return fmin(a, b); }
UIR_SIMT_INLINE double max(double a, double b) { return fmax(a, b); }

UIR_SIMT_INLINE float __int_as_float(int x) { return uir_simt::float_of(uint32_t(x)); }
UIR_SIMT_INLINE int __float_as_int(float x) { return int(uir_simt::bits_of(x)); }
UIR_SIMT_INLINE float __uint_as_float(unsigned x) { return uir_simt::float_of(x); }
UIR_SIMT_INLINE unsigned __float_as_uint(float x) { return uir_simt::bits_of(x); }
UIR_SIMT_INLINE double __longlong_as_double(long long x) { return uir_simt::double_of(uint64_t(x)); }
UIR_SIMT_INLINE long long __double_as_longlong(double x) { return static_cast<long long>(uir_simt::bits_of(x)); }
UIR_SIMT_INLINE double __hiloint2double(int high, int low) {
  return uir_simt::double_of(uint64_t(uint32_t(high)) << 32 | uint32_t(low));
}
UIR_SIMT_INLINE int __double2hiint(double x) { return int(uir_simt::bits_of(x) >> 32); }
UIR_SIMT_INLINE int __double2loint(double x) { return int(uir_simt::bits_of(x)); }

UIR_SIMT_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
UIR_SIMT_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
UIR_SIMT_INLINE int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
UIR_SIMT_INLINE int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
UIR_SIMT_INLINE int __ffs(int x) { return __builtin_ffs(x); }
UIR_SIMT_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
UIR_SIMT_INLINE unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
UIR_SIMT_INLINE int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
UIR_SIMT_INLINE unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}
UIR_SIMT_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  uint64_t bytes = uint64_t(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned choice = selector >> 4 * i & 15, byte = unsigned(bytes >> 8 * (choice & 7)) & 0xff;
    if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
UIR_SIMT_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
UIR_SIMT_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}

namespace uir_simt {

/*! \brief Round to an integer in one of the four directions; exact in double for float and double. */
template <typename F>
UIR_SIMT_INLINE F to_integral(F x, round_mode mode) {
  switch (mode) {
    case round_mode::nearest:
      return __builtin_rint(x);
    case round_mode::zero:
      return __builtin_trunc(x);
    case round_mode::down:
      return __builtin_floor(x);
    default:
      return __builtin_ceil(x);
  }
}

template <typename I>
UIR_SIMT_INLINE I saturate(double x) {
  const I low = I(-1) < I(0) ? I(I(1) << (sizeof(I) * 8 - 1)) : I(0), high = I(~low);
  if (x != x) return 0;
  // 2^digits: the first number that is too large.
  const double limit = double(high / 2 + 1) * 2.0;
  if (x >= limit) return high;
  if (x < double(low)) return low;
  return I(x);
}

/*! \brief double to float in a direction. */
inline float to_float(double x, round_mode mode) {
  float nearest = float(x);
  double back = nearest;
  if (back == x || x != x || mode == round_mode::nearest) return nearest;
  bool above = back > x, want_below = mode == round_mode::down || (mode == round_mode::zero && x > 0);
  if (above && want_below) return nextafterf(nearest, -INFINITY);
  if (!above && !want_below) return nextafterf(nearest, INFINITY);
  return nearest;
}

}  // namespace uir_simt

#define UIR_SIMT_TO_INTEGERS(from, source, suffix, mode)                                               \
  UIR_SIMT_INLINE int __##source##2int_##suffix(from x) {                                              \
    return uir_simt::saturate<int>(uir_simt::to_integral<double>(x, uir_simt::round_mode::mode));      \
  }                                                                                                    \
  UIR_SIMT_INLINE unsigned __##source##2uint_##suffix(from x) {                                        \
    return uir_simt::saturate<unsigned>(uir_simt::to_integral<double>(x, uir_simt::round_mode::mode)); \
  }                                                                                                    \
  UIR_SIMT_INLINE long long __##source##2ll_##suffix(from x) {                                         \
    return uir_simt::saturate<int64_t>(uir_simt::to_integral<double>(x, uir_simt::round_mode::mode));  \
  }                                                                                                    \
  UIR_SIMT_INLINE unsigned long long __##source##2ull_##suffix(from x) {                               \
    return uir_simt::saturate<uint64_t>(uir_simt::to_integral<double>(x, uir_simt::round_mode::mode)); \
  }
#define UIR_SIMT_ROUNDINGS(X) X(rn, nearest) X(rz, zero) X(rd, down) X(ru, up)
#define UIR_SIMT_FLOAT(suffix, mode) UIR_SIMT_TO_INTEGERS(float, float, suffix, mode)
#define UIR_SIMT_DOUBLE(suffix, mode) UIR_SIMT_TO_INTEGERS(double, double, suffix, mode)
UIR_SIMT_ROUNDINGS(UIR_SIMT_FLOAT)
UIR_SIMT_ROUNDINGS(UIR_SIMT_DOUBLE)
#undef UIR_SIMT_FLOAT
#undef UIR_SIMT_DOUBLE
#define UIR_SIMT_TO_FLOAT(suffix, mode) \
  UIR_SIMT_INLINE float __double2float_##suffix(double x) { return uir_simt::to_float(x, uir_simt::round_mode::mode); }
UIR_SIMT_ROUNDINGS(UIR_SIMT_TO_FLOAT)
#undef UIR_SIMT_TO_FLOAT
UIR_SIMT_INLINE float __int2float_rn(int x) { return float(x); }
UIR_SIMT_INLINE float __uint2float_rn(unsigned x) { return float(x); }
UIR_SIMT_INLINE float __ll2float_rn(long long x) { return float(x); }
UIR_SIMT_INLINE float __ull2float_rn(unsigned long long x) { return float(x); }
UIR_SIMT_INLINE double __int2double_rn(int x) { return double(x); }
UIR_SIMT_INLINE double __ll2double_rn(long long x) { return double(x); }
