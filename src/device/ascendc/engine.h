// SPDX-License-Identifier: Apache-2.0
// What this model takes from the engine of all models, by its short names.
#pragma once

#include <cstring>

#include "device/ascendc/include/uir_ascendc/abi.h"
#include "device/engine/bandwidth.h"
#include "device/engine/known.h"
#include "device/engine/numbers.h"
#include "device/engine/ranges.h"
#include "device/engine/result.h"

namespace uir::ascendc {

using engine::AllKnown;
using engine::Bandwidth;
using engine::Bfloat16OfFloat;
using engine::FloatOfBfloat16;
using engine::FloatOfHalf;
using engine::HalfOfFloat;
using engine::Moment;
using engine::PipeUse;
using engine::Range;
using engine::Ranges;
using engine::SetKnown;

/*! \brief An element of float, half or bfloat16_t in memory. */
inline float LoadFloat(const uint8_t* at, uint32_t type) {
  float value;
  uint16_t bits;
  if (type == kUirFloat) {
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::memcpy(&bits, at, sizeof bits);
  return engine::FloatOf(bits, type == kUirHalf);
}
inline void StoreFloat(uint8_t* at, uint32_t type, float value) {
  const uint16_t bits = type == kUirFloat ? 0 : engine::BitsOf(value, type == kUirHalf);
  type == kUirFloat ? std::memcpy(at, &value, sizeof value) : std::memcpy(at, &bits, sizeof bits);
}
/*! \brief A number as an element of the type holds it. */
inline float RoundedTo(uint32_t type, float value) {
  return type == kUirFloat ? value : engine::FloatOf(engine::BitsOf(value, type == kUirHalf), type == kUirHalf);
}

}  // namespace uir::ascendc
