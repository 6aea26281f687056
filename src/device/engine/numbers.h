// SPDX-License-Identifier: Apache-2.0
// Arrays of devices' narrow number types as arrays of float, and back.
#pragma once

#include <cstdint>

namespace uir::engine {

void FloatOfHalf(float* out, const uint16_t* in, int64_t n);
void FloatOfBfloat16(float* out, const uint16_t* in, int64_t n);
/*! \brief Rounded to nearest, ties to even. */
void HalfOfFloat(uint16_t* out, const float* in, int64_t n);
void Bfloat16OfFloat(uint16_t* out, const float* in, int64_t n);

/*! \brief A single number of two bytes, half or bfloat16_t. */
inline float FloatOf(uint16_t bits, bool half) {
  float value;
  (half ? FloatOfHalf : FloatOfBfloat16)(&value, &bits, 1);
  return value;
}
inline uint16_t BitsOf(float value, bool half) {
  uint16_t bits;
  (half ? HalfOfFloat : Bfloat16OfFloat)(&bits, &value, 1);
  return bits;
}

}  // namespace uir::engine
