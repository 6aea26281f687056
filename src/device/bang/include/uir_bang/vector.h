// SPDX-License-Identifier: Apache-2.0
// Functions on elements of NRAM, by the shape of their parameters.
#pragma once

#include "types.h"

#define UIR_BANG_SITE uir_bang::Site at = uir_bang::Site::Here()
// The name in the library is that of the function without `__bang_`.
#define UIR_BANG_CALL(NAME) uir_bang::Call(#NAME)

#define UIR_BANG_UNARY(NAME, T)                                                \
  UIR_BANG_FUNCTION void __bang_##NAME(T* dst, T* src, int n, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(NAME) << dst << src << n).Run(at);                          \
  }
#define UIR_BANG_BINARY(NAME, T)                                                         \
  UIR_BANG_FUNCTION void __bang_##NAME(T* dst, T* src0, T* src1, int n, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(NAME) << dst << src0 << src1 << n).Run(at);                           \
  }
#define UIR_BANG_WITH_SCALAR(NAME, T)                                                   \
  UIR_BANG_FUNCTION void __bang_##NAME(T* dst, T* src, T value, int n, UIR_BANG_SITE) { \
    ((UIR_BANG_CALL(NAME) << dst << src).With(uir_bang::Value(value)) << n).Run(at);    \
  }
#define UIR_BANG_CYCLE(NAME, T)                                                                         \
  UIR_BANG_FUNCTION void __bang_cycle_##NAME(T* dst, T* src, T* seg, int n, int n_seg, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(cycle_##NAME) << dst << src << seg << n << n_seg).Run(at);                           \
  }

// For the types that have it.
#define UIR_BANG_HF(FORM, NAME) FORM(NAME, half) FORM(NAME, float)
#define UIR_BANG_HBF(FORM, NAME) FORM(NAME, half) FORM(NAME, bfloat16_t) FORM(NAME, float)
#define UIR_BANG_BITS(FORM, NAME) FORM(NAME, char) FORM(NAME, short) FORM(NAME, int)
#define UIR_BANG_LOGIC(FORM, NAME) UIR_BANG_HBF(FORM, NAME) UIR_BANG_BITS(FORM, NAME)

// Arithmetic.
UIR_BANG_HBF(UIR_BANG_BINARY, add)
UIR_BANG_HBF(UIR_BANG_BINARY, sub)
UIR_BANG_HBF(UIR_BANG_BINARY, mul)
UIR_BANG_HF(UIR_BANG_BINARY, div)
UIR_BANG_HBF(UIR_BANG_WITH_SCALAR, add_scalar)
UIR_BANG_HBF(UIR_BANG_WITH_SCALAR, sub_scalar)
UIR_BANG_HBF(UIR_BANG_WITH_SCALAR, mul_scalar)
UIR_BANG_HBF(UIR_BANG_CYCLE, add)
UIR_BANG_HBF(UIR_BANG_CYCLE, sub)
UIR_BANG_HBF(UIR_BANG_CYCLE, mul)

// Larger and smaller.
UIR_BANG_HBF(UIR_BANG_BINARY, maxequal)
UIR_BANG_HBF(UIR_BANG_BINARY, minequal)
UIR_BANG_HF(UIR_BANG_BINARY, maximum)
UIR_BANG_HF(UIR_BANG_BINARY, minimum)
UIR_BANG_HF(UIR_BANG_BINARY, nan_maximum)
UIR_BANG_HF(UIR_BANG_BINARY, nan_minimum)
UIR_BANG_HF(UIR_BANG_WITH_SCALAR, maxeq_scalar)
UIR_BANG_HF(UIR_BANG_WITH_SCALAR, mineq_scalar)
UIR_BANG_HBF(UIR_BANG_CYCLE, maxequal)
UIR_BANG_HBF(UIR_BANG_CYCLE, minequal)
UIR_BANG_HF(UIR_BANG_CYCLE, maximum)
UIR_BANG_HF(UIR_BANG_CYCLE, minimum)
UIR_BANG_HF(UIR_BANG_CYCLE, nan_maximum)
UIR_BANG_HF(UIR_BANG_CYCLE, nan_minimum)

// Comparisons: 1 or 0 of the operands' type.
#define UIR_BANG_COMPARE(NAME)                      \
  UIR_BANG_HBF(UIR_BANG_BINARY, NAME)               \
  UIR_BANG_HBF(UIR_BANG_WITH_SCALAR, NAME##_scalar) \
  UIR_BANG_HBF(UIR_BANG_CYCLE, NAME)
UIR_BANG_COMPARE(lt)
UIR_BANG_COMPARE(le)
UIR_BANG_COMPARE(gt)
UIR_BANG_COMPARE(ge)
UIR_BANG_COMPARE(eq)
UIR_BANG_COMPARE(ne)

// Truth of values (1 or 0), and bits.
UIR_BANG_LOGIC(UIR_BANG_BINARY, and)
UIR_BANG_LOGIC(UIR_BANG_BINARY, or)
UIR_BANG_LOGIC(UIR_BANG_BINARY, xor)
UIR_BANG_LOGIC(UIR_BANG_UNARY, not)
UIR_BANG_BITS(UIR_BANG_BINARY, band)
UIR_BANG_BITS(UIR_BANG_BINARY, bor)
UIR_BANG_BITS(UIR_BANG_BINARY, bxor)
UIR_BANG_BITS(UIR_BANG_UNARY, bnot)
UIR_BANG_BITS(UIR_BANG_WITH_SCALAR, band_scalar)
UIR_BANG_BITS(UIR_BANG_WITH_SCALAR, bor_scalar)
UIR_BANG_BITS(UIR_BANG_WITH_SCALAR, bxor_scalar)
UIR_BANG_BITS(UIR_BANG_CYCLE, band)
UIR_BANG_BITS(UIR_BANG_CYCLE, bor)
UIR_BANG_BITS(UIR_BANG_CYCLE, bxor)

// Functions of one operand.
UIR_BANG_UNARY(sqrt, float)
UIR_BANG_UNARY(rsqrt, float)
UIR_BANG_UNARY(recip, float)
UIR_BANG_UNARY(pow2, float)
UIR_BANG_UNARY(log, float)
UIR_BANG_UNARY(log2, float)
UIR_BANG_UNARY(sin, float)
UIR_BANG_UNARY(cos, float)
UIR_BANG_UNARY(floor, float)
UIR_BANG_UNARY(round, float)
UIR_BANG_HBF(UIR_BANG_UNARY, square)
UIR_BANG_HBF(UIR_BANG_UNARY, relu)
UIR_BANG_HF(UIR_BANG_UNARY, abs)
UIR_BANG_HF(UIR_BANG_UNARY, active_exp)
UIR_BANG_HF(UIR_BANG_UNARY, active_exphp)
UIR_BANG_HF(UIR_BANG_UNARY, active_exp_less_0)
UIR_BANG_HF(UIR_BANG_UNARY, active_log)
UIR_BANG_HF(UIR_BANG_UNARY, active_loghp)
UIR_BANG_HF(UIR_BANG_UNARY, active_sqrt)
UIR_BANG_HF(UIR_BANG_UNARY, active_rsqrt)
UIR_BANG_HF(UIR_BANG_UNARY, active_recip)
UIR_BANG_HF(UIR_BANG_UNARY, active_reciphp)
UIR_BANG_HF(UIR_BANG_UNARY, active_tanh)
UIR_BANG_HF(UIR_BANG_UNARY, active_sigmoid)
UIR_BANG_HF(UIR_BANG_UNARY, active_relu)
UIR_BANG_HF(UIR_BANG_UNARY, active_gelu)
UIR_BANG_HF(UIR_BANG_UNARY, active_gelup)
UIR_BANG_HF(UIR_BANG_UNARY, active_sin)
UIR_BANG_HF(UIR_BANG_UNARY, active_cos)
UIR_BANG_HF(UIR_BANG_UNARY, active_abs)
UIR_BANG_HF(UIR_BANG_UNARY, active_sign)

// Two operations in one: vectors or values after the first operand.
#define UIR_BANG_FUSION(T)                                                                                          \
  UIR_BANG_FUNCTION void __bang_fusion(mluFusionOpCode op, T* dst, T* src0, T* src1, T* src2, int n, int n12,       \
                                       UIR_BANG_SITE) {                                                             \
    (UIR_BANG_CALL(fusion) << dst << src0 << src1 << src2 << static_cast<int>(op) << n << n12).Run(at);             \
  }                                                                                                                 \
  UIR_BANG_FUNCTION void __bang_fusion(mluFusionOpCode op, T* dst, T* src0, T* src1, T src2, int n, int n1,         \
                                       UIR_BANG_SITE) {                                                             \
    ((UIR_BANG_CALL(fusion) << dst << src0 << src1).With(uir_bang::Value(src2)) << static_cast<int>(op) << n << n1) \
        .Run(at);                                                                                                   \
  }                                                                                                                 \
  UIR_BANG_FUNCTION void __bang_fusion(mluFusionOpCode op, T* dst, T* src0, T src1, T* src2, int n, int n2,         \
                                       UIR_BANG_SITE) {                                                             \
    ((UIR_BANG_CALL(fusion) << dst << src0).With(uir_bang::Value(src1)) << src2 << static_cast<int>(op) << n << n2) \
        .Run(at);                                                                                                   \
  }                                                                                                                 \
  UIR_BANG_FUNCTION void __bang_fusion(mluFusionOpCode op, T* dst, T* src0, T src1, T src2, int n, UIR_BANG_SITE) { \
    ((UIR_BANG_CALL(fusion) << dst << src0).With(uir_bang::Value(src1)).With(uir_bang::Value(src2))                 \
     << static_cast<int>(op) << n << 1)                                                                             \
        .Run(at);                                                                                                   \
  }
UIR_BANG_FUSION(half)
UIR_BANG_FUSION(bfloat16_t)
UIR_BANG_FUSION(float)

// Fills.
#define UIR_BANG_WRITE_VALUE(T)                                                                                        \
  UIR_BANG_FUNCTION void __bang_write_value(void* dst, int n, T value, UIR_BANG_SITE) {                                \
    ((UIR_BANG_CALL(write_value) << static_cast<T*>(dst)).With(uir_bang::Value(value)) << n).Run(at);                  \
  }                                                                                                                    \
  UIR_BANG_FUNCTION void __bang_write_value(void* dst, int n, T value, int stride0, int iter1, int stride1, int iter2, \
                                            UIR_BANG_SITE) {                                                           \
    ((UIR_BANG_CALL(write_value) << static_cast<T*>(dst)).With(uir_bang::Value(value))                                 \
     << n << stride0 << iter1 << stride1 << iter2)                                                                     \
        .Run(at);                                                                                                      \
  }
UIR_BANG_WRITE_VALUE(char)
UIR_BANG_WRITE_VALUE(signed char)
UIR_BANG_WRITE_VALUE(unsigned char)
UIR_BANG_WRITE_VALUE(short)
UIR_BANG_WRITE_VALUE(unsigned short)
UIR_BANG_WRITE_VALUE(int)
UIR_BANG_WRITE_VALUE(unsigned int)
UIR_BANG_WRITE_VALUE(float)
UIR_BANG_WRITE_VALUE(half)
#define UIR_BANG_WRITE_ZERO(T)                                                                  \
  UIR_BANG_FUNCTION void __bang_write_zero(T* dst, int n, UIR_BANG_SITE) {                      \
    ((UIR_BANG_CALL(write_zero) << dst).With(uir_bang::Value(static_cast<T>(0))) << n).Run(at); \
  }
UIR_BANG_WRITE_ZERO(signed char)
UIR_BANG_WRITE_ZERO(unsigned char)
UIR_BANG_WRITE_ZERO(short)
UIR_BANG_WRITE_ZERO(unsigned short)
UIR_BANG_WRITE_ZERO(int)
UIR_BANG_WRITE_ZERO(unsigned int)
UIR_BANG_WRITE_ZERO(half)
UIR_BANG_WRITE_ZERO(float)

#undef UIR_BANG_WRITE_ZERO
#undef UIR_BANG_WRITE_VALUE
#undef UIR_BANG_FUSION
#undef UIR_BANG_COMPARE
