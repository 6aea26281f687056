// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: 8-bit floats, by conversion to and from wider types.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace uir_simt {
constexpr narrow_format fp8_format(__nv_fp8_interpretation_t kind) { return kind == __NV_E4M3 ? kE4m3 : kE5m2; }
}  // namespace uir_simt

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  // The toolkit gives 0x7f for every NaN.
  if (x != x) return 0x7f;
  return __nv_fp8_storage_t(uir_simt::narrow(x, uir_simt::fp8_format(kind), saturate == __NV_SATFINITE));
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(x, saturate, kind);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  // Exact: both formats are parts of binary16.
  return {uint16_t(uir_simt::narrow(uir_simt::widen(x, uir_simt::fp8_format(kind)), uir_simt::kHalf, false))};
}

#define UIR_SIMT_FP8(type, kind)                                                                        \
  struct type {                                                                                         \
    __nv_fp8_storage_t __x;                                                                             \
    type() = default;                                                                                   \
    explicit type(float value) : __x(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind)) {}             \
    explicit type(double value) : __x(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, kind)) {}           \
    explicit type(__half value) : type(float(value)) {}                                                 \
    explicit type(__nv_bfloat16 value) : type(float(value)) {}                                          \
    explicit operator float() const { return float(uir_simt::widen(__x, uir_simt::fp8_format(kind))); } \
    explicit operator double() const { return uir_simt::widen(__x, uir_simt::fp8_format(kind)); }       \
    explicit operator __half() const { return __half(float(*this)); }                                   \
  };
UIR_SIMT_FP8(__nv_fp8_e4m3, __NV_E4M3)
UIR_SIMT_FP8(__nv_fp8_e5m2, __NV_E5M2)
#undef UIR_SIMT_FP8
