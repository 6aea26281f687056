// SPDX-License-Identifier: Apache-2.0
/*!
 * \file numbers.h
 * \brief Arrays of devices' narrow number types as arrays of float, and back.
 */
#ifndef UIR_DEVICE_ENGINE_NUMBERS_H_
#define UIR_DEVICE_ENGINE_NUMBERS_H_

#include <cstdint>

namespace uir {
namespace engine {

void FloatOfHalf(float* out, const uint16_t* in, int64_t n);
void FloatOfBfloat16(float* out, const uint16_t* in, int64_t n);
/*! \brief Rounded to nearest, ties to even. */
void HalfOfFloat(uint16_t* out, const float* in, int64_t n);
void Bfloat16OfFloat(uint16_t* out, const float* in, int64_t n);

}  // namespace engine
}  // namespace uir

#endif  // UIR_DEVICE_ENGINE_NUMBERS_H_
