// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: __half, computed in float and rounded to nearest even.
#ifndef UIR_SIMT_CUDA_FP16_H_
#define UIR_SIMT_CUDA_FP16_H_

#include "uir_simt/narrow.h"
#include "uir_simt/narrow_type.h"
#include "uir_simt/prelude.h"

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short __x;

  __half() = default;
  __half(const __half_raw& raw) : __x(raw.x) {}
  __half(float value) : __x(uir_simt::float_to_half(value)) {}
  __half(double value) : __x(uint16_t(uir_simt::narrow(value, uir_simt::kHalf, false))) {}
  explicit __half(int value) : __half(double(value)) {}
  explicit __half(unsigned value) : __half(double(value)) {}
  explicit __half(long long value) : __half(float(value)) {}
  static __half from_bits(uint16_t bits) {
    __half value;
    value.__x = bits;
    return value;
  }
  operator float() const { return uir_simt::half_to_float(__x); }
  operator __half_raw() const { return {__x}; }
};
typedef __half half;

UIR_SIMT_NARROW_ARITHMETIC(__half)
UIR_SIMT_NARROW_FROM(__half, half, uir_simt::kHalf)
UIR_SIMT_INLINE float __half2float(__half x) { return float(x); }
UIR_SIMT_INLINE unsigned short __half_as_ushort(__half x) { return x.__x; }
UIR_SIMT_INLINE short __half_as_short(__half x) { return static_cast<short>(x.__x); }
UIR_SIMT_INLINE __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
UIR_SIMT_INLINE __half __short_as_half(short bits) { return __half::from_bits(static_cast<uint16_t>(bits)); }

struct alignas(4) __half2 {
  __half x, y;
};
typedef __half2 half2;
UIR_SIMT_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
UIR_SIMT_INLINE __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
UIR_SIMT_INLINE __half __low2half(__half2 v) { return v.x; }
UIR_SIMT_INLINE __half __high2half(__half2 v) { return v.y; }
UIR_SIMT_INLINE float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }

namespace uir_simt {
UIR_SIMT_INLINE void set_unwritten(__half& element) { element.__x = 0x7e2d; }
}  // namespace uir_simt

#endif  // UIR_SIMT_CUDA_FP16_H_
