// SPDX-License-Identifier: Apache-2.0
// Conversions between types.
#pragma once

#include "vector.h"

#define UIR_BANG_CAST(NAME, TO, FROM)                                              \
  UIR_BANG_FUNCTION void __bang_##NAME(TO* dst, FROM* src, int n, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(NAME) << dst << src << n).Run(at);                              \
  }
// Integers count in units of 2^fix_position.
#define UIR_BANG_FIXED(NAME, TO, FROM)                                                               \
  UIR_BANG_FUNCTION void __bang_##NAME(TO* dst, FROM* src, int n, int fix_position, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(NAME) << dst << src << n << fix_position).Run(at);                                \
  }
#define UIR_BANG_MODES(FORM, NAME, TO, FROM) \
  FORM(NAME##_rn, TO, FROM)                  \
  FORM(NAME##_rd, TO, FROM)                  \
  FORM(NAME##_tz, TO, FROM)                  \
  FORM(NAME##_dn, TO, FROM)                  \
  FORM(NAME##_up, TO, FROM)                  \
  FORM(NAME##_oz, TO, FROM)

UIR_BANG_CAST(half2float, float, half)
UIR_BANG_CAST(bfloat162float, float, bfloat16_t)
UIR_BANG_CAST(bfloat162float_rn, float, bfloat16_t)
UIR_BANG_MODES(UIR_BANG_CAST, float2half, half, float)
UIR_BANG_MODES(UIR_BANG_CAST, float2bfloat16, bfloat16_t, float)
UIR_BANG_FIXED(float2int32, int, float)
UIR_BANG_MODES(UIR_BANG_FIXED, float2int32, int, float)
UIR_BANG_FIXED(float2int, int, float)
UIR_BANG_MODES(UIR_BANG_FIXED, float2int, int, float)
UIR_BANG_MODES(UIR_BANG_FIXED, float2int16, short, float)
UIR_BANG_MODES(UIR_BANG_FIXED, float2int8, int8_t, float)
UIR_BANG_FIXED(int322float, float, int)
UIR_BANG_FIXED(int322float_rn, float, int)
UIR_BANG_FIXED(int2float, float, int)
UIR_BANG_FIXED(int162float, float, short)
UIR_BANG_FIXED(int82float, float, int8_t)
UIR_BANG_MODES(UIR_BANG_FIXED, half2int16, short, half)
UIR_BANG_MODES(UIR_BANG_FIXED, half2int8, int8_t, half)
UIR_BANG_MODES(UIR_BANG_CAST, half2short, short, half)
UIR_BANG_CAST(short2half, half, short)
UIR_BANG_FIXED(int162half, half, short)
UIR_BANG_FIXED(int82half, half, int8_t)
UIR_BANG_CAST(uchar2half, half, unsigned char)

#undef UIR_BANG_MODES
#undef UIR_BANG_FIXED
#undef UIR_BANG_CAST
