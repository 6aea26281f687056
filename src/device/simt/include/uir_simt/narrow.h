// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the narrow formats, as bit patterns, rounded to nearest even (IEEE 754-2019
// binary16; bfloat16; OCP 8-bit floating point E4M3 and E5M2, saturating to the largest finite value).
#pragma once

#include <stdint.h>
#include <string.h>

namespace uir_simt {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

inline uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

inline double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

/*! \brief How a value between two numbers is rounded. */
enum class round_mode { nearest, zero, down, up };

/*! \brief A narrow binary format. */
struct narrow_format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // else the largest exponent holds numbers, and all ones is the one NaN (E4M3)
};

constexpr narrow_format kHalf{5, 10, true};
constexpr narrow_format kBfloat16{8, 7, true};
constexpr narrow_format kE4m3{4, 3, false};
constexpr narrow_format kE5m2{5, 2, true};

/*! \brief The value of a narrow number, exact in double. NaNs keep the bits of their payload at the top. */
inline double widen(uint32_t bits, narrow_format f) {
  uint32_t top = (1u << f.exponent_bits) - 1;
  uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1), exponent = bits >> f.mantissa_bits & top;
  uint64_t sign = uint64_t{bits >> (f.exponent_bits + f.mantissa_bits) & 1} << 63;
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  if (exponent == top && f.has_infinity) {
    return double_of(sign | uint64_t{0x7ff} << 52 | uint64_t{mantissa} << (52 - f.mantissa_bits));
  }
  if (!f.has_infinity && exponent == top && mantissa == (1u << f.mantissa_bits) - 1) {
    return double_of(sign | uint64_t{0x7ff8} << 48);
  }
  if (exponent == 0) {
    double value = static_cast<double>(mantissa) * double_of(uint64_t(1023 + 1 - bias - f.mantissa_bits) << 52);
    return sign ? -value : value;
  }
  return double_of(sign | uint64_t(static_cast<int>(exponent) - bias + 1023) << 52 |
                   uint64_t{mantissa} << (52 - f.mantissa_bits));
}

/*! \brief Round to a narrow format. `saturate`: what is too large, infinities included, becomes the largest finite. */
inline uint32_t narrow(double value, narrow_format f, bool saturate, round_mode mode = round_mode::nearest) {
  uint64_t bits = bits_of(value);
  uint32_t sign = static_cast<uint32_t>(bits >> 63) << (f.exponent_bits + f.mantissa_bits);
  uint32_t top = (1u << f.exponent_bits) - 1;
  uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > uint64_t{0x7ff} << 52) {  // NaN
    if (!f.has_infinity) return sign | top << f.mantissa_bits | ((1u << f.mantissa_bits) - 1);
    uint32_t payload = static_cast<uint32_t>(bits >> (52 - f.mantissa_bits)) & ((1u << f.mantissa_bits) - 1);
    return sign | top << f.mantissa_bits | payload | 1u << (f.mantissa_bits - 1);
  }
  uint32_t largest =
      f.has_infinity ? (top << f.mantissa_bits) - 1 : (top << f.mantissa_bits | ((1u << f.mantissa_bits) - 2));
  uint32_t beyond = saturate         ? largest
                    : f.has_infinity ? top << f.mantissa_bits
                                     : (top << f.mantissa_bits | ((1u << f.mantissa_bits) - 1));
  if (magnitude == uint64_t{0x7ff} << 52) return sign | beyond;
  if (magnitude == 0) return sign;
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  int exponent = static_cast<int>(magnitude >> 52) - 1023;
  uint64_t mantissa = (magnitude & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  if (magnitude >> 52 == 0)
    return mode == round_mode::up && !sign ? 1 : mode == round_mode::down && sign ? sign | 1 : sign;
  int shift = 52 - f.mantissa_bits;
  int narrow_exponent = exponent + bias;
  if (narrow_exponent <= 0) {  // subnormal: fewer bits are kept
    shift += 1 - narrow_exponent;
    narrow_exponent = 0;
  }
  if (shift > 63) shift = 63;
  uint64_t kept = mantissa >> shift, rest = mantissa & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  bool up = mode == round_mode::nearest ? rest > half || (rest == half && (kept & 1))
            : mode == round_mode::up    ? rest && !sign
            : mode == round_mode::down  ? rest && sign
                                        : false;
  kept += up;
  // The hidden bit, and a carry out of the mantissa, add to the exponent.
  uint64_t result = narrow_exponent > 0 ? (uint64_t(narrow_exponent - 1) << f.mantissa_bits) + kept : kept;
  if (result > largest) {
    bool toward_zero =
        mode == round_mode::zero || (mode == round_mode::up && sign) || (mode == round_mode::down && !sign);
    return sign | (toward_zero ? largest : beyond);
  }
  return sign | static_cast<uint32_t>(result);
}

inline float half_to_float(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // Scaling by 2^112 moves the exponent and makes subnormal numbers normal, exactly.
  return float_of(bits_of(float_of(rest << 13) * float_of(0x77800000)) | sign);
}

inline uint16_t float_to_half(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) return uint16_t(narrow(value, kHalf, false));
  return uint16_t(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

inline float bfloat16_to_float(uint16_t bits) { return float_of(uint32_t{bits} << 16); }

inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace uir_simt
