// SPDX-License-Identifier: Apache-2.0
// A 16-bit float class, which stores bits and computes in float, rounded once. Float has more than twice the
// bits, so that the result of + - * / and of a square root is the correctly rounded one.
#pragma once

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

// A 16-bit float class TYPE that the toolkit's functions call NAME, with its bits in __x, and pairs of it.
#define UIR_SIMT_NARROW_FLOAT(type, name, format, from_float, to_float, unwritten_bits)                       \
  struct type##_raw {                                                                                         \
    unsigned short x;                                                                                         \
  };                                                                                                          \
  struct type {                                                                                               \
    unsigned short __x;                                                                                       \
    type() = default;                                                                                         \
    type(const type##_raw& raw) : __x(raw.x) {}                                                               \
    type(float value) : __x(from_float(value)) {}                                                             \
    type(double value) : __x(uint16_t(uir_simt::narrow(value, format, false))) {}                             \
    explicit type(int value) : type(double(value)) {}                                                         \
    explicit type(unsigned value) : type(double(value)) {}                                                    \
    explicit type(long long value) : type(float(value)) {}                                                    \
    static type from_bits(uint16_t bits) {                                                                    \
      type value;                                                                                             \
      value.__x = bits;                                                                                       \
      return value;                                                                                           \
    }                                                                                                         \
    operator float() const { return to_float(__x); }                                                          \
    operator type##_raw() const { return {__x}; }                                                             \
  };                                                                                                          \
  UIR_SIMT_NARROW_ARITHMETIC(type)                                                                            \
  UIR_SIMT_NARROW_FROM(type, name, format)                                                                    \
  UIR_SIMT_INLINE float __##name##2float(type x) { return float(x); }                                         \
  UIR_SIMT_INLINE unsigned short __##name##_as_ushort(type x) { return x.__x; }                               \
  UIR_SIMT_INLINE short __##name##_as_short(type x) { return static_cast<short>(x.__x); }                     \
  UIR_SIMT_INLINE type __ushort_as_##name(unsigned short bits) { return type::from_bits(bits); }              \
  UIR_SIMT_INLINE type __short_as_##name(short bits) { return type::from_bits(static_cast<uint16_t>(bits)); } \
  struct alignas(4) type##2 { type x, y; };                                                                   \
  UIR_SIMT_INLINE type##2 __halves2##name##2(type x, type y) { return {x, y}; }                               \
  UIR_SIMT_INLINE type##2 __floats2##name##2_rn(float x, float y) { return {type(x), type(y)}; }              \
  UIR_SIMT_INLINE type __low2##name(type##2 v) { return v.x; }                                                \
  UIR_SIMT_INLINE type __high2##name(type##2 v) { return v.y; }                                               \
  UIR_SIMT_INLINE float2 __##name##22float2(type##2 v) { return {float(v.x), float(v.y)}; }                   \
  namespace uir_simt {                                                                                        \
  UIR_SIMT_INLINE void set_unwritten(type& element) { element.__x = unwritten_bits(uir_simt_unwritten()); }   \
  }
