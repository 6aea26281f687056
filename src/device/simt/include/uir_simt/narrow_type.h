// SPDX-License-Identifier: Apache-2.0
/*!
 * \file narrow_type.h
 * \brief Arithmetic and comparison of a 16-bit float class: in float, rounded once. Float has more than twice the bits,
 * so that the result of + - * / and of a square root is the correctly rounded one.
 */
#ifndef UIR_SIMT_NARROW_TYPE_H_
#define UIR_SIMT_NARROW_TYPE_H_

#define UIR_SIMT_NARROW_ARITHMETIC(type)                                                                       \
  UIR_SIMT_INLINE type operator+(type a, type b) { return type(float(a) + float(b)); }                         \
  UIR_SIMT_INLINE type operator-(type a, type b) { return type(float(a) - float(b)); }                         \
  UIR_SIMT_INLINE type operator*(type a, type b) { return type(float(a) * float(b)); }                         \
  UIR_SIMT_INLINE type operator/(type a, type b) { return type(float(a) / float(b)); }                         \
  UIR_SIMT_INLINE type operator-(type a) { return type(-float(a)); }                                           \
  UIR_SIMT_INLINE type& operator+=(type& a, type b) { return a = a + b; }                                      \
  UIR_SIMT_INLINE type& operator-=(type& a, type b) { return a = a - b; }                                      \
  UIR_SIMT_INLINE type& operator*=(type& a, type b) { return a = a * b; }                                      \
  UIR_SIMT_INLINE type& operator/=(type& a, type b) { return a = a / b; }                                      \
  UIR_SIMT_INLINE bool operator==(type a, type b) { return float(a) == float(b); }                             \
  UIR_SIMT_INLINE bool operator!=(type a, type b) { return float(a) != float(b); }                             \
  UIR_SIMT_INLINE bool operator<(type a, type b) { return float(a) < float(b); }                               \
  UIR_SIMT_INLINE bool operator>(type a, type b) { return float(a) > float(b); }                               \
  UIR_SIMT_INLINE bool operator<=(type a, type b) { return float(a) <= float(b); }                             \
  UIR_SIMT_INLINE bool operator>=(type a, type b) { return float(a) >= float(b); }                             \
  UIR_SIMT_INLINE type __hadd(type a, type b) { return a + b; }                                                \
  UIR_SIMT_INLINE type __hsub(type a, type b) { return a - b; }                                                \
  UIR_SIMT_INLINE type __hmul(type a, type b) { return a * b; }                                                \
  UIR_SIMT_INLINE type __hdiv(type a, type b) { return a / b; }                                                \
  UIR_SIMT_INLINE type __hneg(type a) { return -a; }                                                           \
  UIR_SIMT_INLINE type __habs(type a) { return type(fabsf(float(a))); }                                        \
  UIR_SIMT_INLINE type __hmax(type a, type b) { return type(fmaxf(float(a), float(b))); }                      \
  UIR_SIMT_INLINE type __hmin(type a, type b) { return type(fminf(float(a), float(b))); }                      \
  UIR_SIMT_INLINE type __hfma(type a, type b, type c) { return type(double(float(a)) * float(b) + float(c)); } \
  UIR_SIMT_INLINE bool __heq(type a, type b) { return a == b; }                                                \
  UIR_SIMT_INLINE bool __hlt(type a, type b) { return a < b; }                                                 \
  UIR_SIMT_INLINE bool __hgt(type a, type b) { return a > b; }                                                 \
  UIR_SIMT_INLINE bool __hisnan(type a) { return float(a) != float(a); }                                       \
  UIR_SIMT_INLINE type hsqrt(type a) { return type(sqrtf(float(a))); }

// Conversions of a class NAME from float and double in the four directions.
#define UIR_SIMT_NARROW_FROM(type, name, format)                                                      \
  UIR_SIMT_INLINE type __float2##name(float x) { return type(x); }                                    \
  UIR_SIMT_INLINE type __double2##name(double x) { return type(x); }                                  \
  UIR_SIMT_INLINE type __float2##name##_rn(float x) { return type(x); }                               \
  UIR_SIMT_INLINE type __float2##name##_rz(float x) {                                                 \
    return type::from_bits(uint16_t(uir_simt::narrow(x, format, false, uir_simt::round_mode::zero))); \
  }                                                                                                   \
  UIR_SIMT_INLINE type __float2##name##_rd(float x) {                                                 \
    return type::from_bits(uint16_t(uir_simt::narrow(x, format, false, uir_simt::round_mode::down))); \
  }                                                                                                   \
  UIR_SIMT_INLINE type __float2##name##_ru(float x) {                                                 \
    return type::from_bits(uint16_t(uir_simt::narrow(x, format, false, uir_simt::round_mode::up)));   \
  }

#endif  // UIR_SIMT_NARROW_TYPE_H_
