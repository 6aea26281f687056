// SPDX-License-Identifier: Apache-2.0
/*!
 * \file narrow.cc
 * \brief Single numbers of two bytes, for the scalar code of kernels.
 */
#include "engine.h"
#include "include/uir_ascendc/abi.h"

extern "C" {

float uir_ascendc_float_of(uint16_t bits, int type) {
  float value;
  (type == kUirHalf ? uir::engine::FloatOfHalf : uir::engine::FloatOfBfloat16)(&value, &bits, 1);
  return value;
}

uint16_t uir_ascendc_bits_of(float value, int type) {
  uint16_t bits;
  (type == kUirHalf ? uir::engine::HalfOfFloat : uir::engine::Bfloat16OfFloat)(&bits, &value, 1);
  return bits;
}

}  // extern "C"
