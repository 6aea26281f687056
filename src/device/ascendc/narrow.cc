// SPDX-License-Identifier: Apache-2.0
// Single numbers of two bytes, for the scalar code of kernels.
#include "device/ascendc/engine.h"
#include "device/ascendc/include/uir_ascendc/abi.h"

extern "C" {

float uir_ascendc_float_of(uint16_t bits, int type) { return uir::engine::FloatOf(bits, type == kUirHalf); }

uint16_t uir_ascendc_bits_of(float value, int type) { return uir::engine::BitsOf(value, type == kUirHalf); }

}  // extern "C"
