// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: __nv_bfloat16, computed in float and rounded to nearest even.
#ifndef UIR_SIMT_CUDA_BF16_H_
#define UIR_SIMT_CUDA_BF16_H_

#include "uir_simt/narrow.h"
#include "uir_simt/narrow_type.h"
#include "uir_simt/prelude.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short __x;

  __nv_bfloat16() = default;
  __nv_bfloat16(const __nv_bfloat16_raw& raw) : __x(raw.x) {}
  __nv_bfloat16(float value) : __x(uir_simt::float_to_bfloat16(value)) {}
  __nv_bfloat16(double value) : __x(uint16_t(uir_simt::narrow(value, uir_simt::kBfloat16, false))) {}
  explicit __nv_bfloat16(int value) : __nv_bfloat16(double(value)) {}
  explicit __nv_bfloat16(unsigned value) : __nv_bfloat16(double(value)) {}
  explicit __nv_bfloat16(long long value) : __nv_bfloat16(float(value)) {}
  static __nv_bfloat16 from_bits(uint16_t bits) {
    __nv_bfloat16 value;
    value.__x = bits;
    return value;
  }
  operator float() const { return uir_simt::bfloat16_to_float(__x); }
  operator __nv_bfloat16_raw() const { return {__x}; }
};
typedef __nv_bfloat16 nv_bfloat16;

UIR_SIMT_NARROW_ARITHMETIC(__nv_bfloat16)
UIR_SIMT_NARROW_FROM(__nv_bfloat16, bfloat16, uir_simt::kBfloat16)
UIR_SIMT_INLINE float __bfloat162float(__nv_bfloat16 x) { return float(x); }
UIR_SIMT_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.__x; }
UIR_SIMT_INLINE short __bfloat16_as_short(__nv_bfloat16 x) { return static_cast<short>(x.__x); }
UIR_SIMT_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16::from_bits(bits); }
UIR_SIMT_INLINE __nv_bfloat16 __short_as_bfloat16(short bits) {
  return __nv_bfloat16::from_bits(static_cast<uint16_t>(bits));
}

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;
UIR_SIMT_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
UIR_SIMT_INLINE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
UIR_SIMT_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
UIR_SIMT_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
UIR_SIMT_INLINE float2 __bfloat1622float2(__nv_bfloat162 v) { return {float(v.x), float(v.y)}; }

namespace uir_simt {
UIR_SIMT_INLINE void set_unwritten(__nv_bfloat16& element) { element.__x = 0x7fc5; }
}  // namespace uir_simt

#endif  // UIR_SIMT_CUDA_BF16_H_
