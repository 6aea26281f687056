// SPDX-License-Identifier: Apache-2.0
// Elements of operands as arrays of numbers that functions compute with.
#pragma once

#include <cstdint>
#include <cstring>

#include "device/bang/include/uir_bang/abi.h"
#include "device/engine/numbers.h"

namespace uir::bang {

/*! \brief Elements that are taken at once. */
constexpr int64_t kChunk = 512;

inline bool IsFloating(uint32_t type) { return type <= kBangFloat; }

/*! \brief n numbers of a floating point type as float: exact. */
inline void LoadReal(uint32_t type, const uint8_t* from, float* out, int64_t n) {
  switch (type) {
    case kBangHalf:
      return engine::FloatOfHalf(out, reinterpret_cast<const uint16_t*>(from), n);
    case kBangBfloat16:
      return engine::FloatOfBfloat16(out, reinterpret_cast<const uint16_t*>(from), n);
    default:
      std::memcpy(out, from, static_cast<size_t>(n) * 4);
  }
}

/*! \brief Floats as numbers of a type, rounded to nearest even. */
inline void StoreReal(uint32_t type, uint8_t* to, const float* in, int64_t n) {
  switch (type) {
    case kBangHalf:
      return engine::HalfOfFloat(reinterpret_cast<uint16_t*>(to), in, n);
    case kBangBfloat16:
      return engine::Bfloat16OfFloat(reinterpret_cast<uint16_t*>(to), in, n);
    default:
      std::memcpy(to, in, static_cast<size_t>(n) * 4);
  }
}

/*! \brief A float as a number of a type holds it. */
inline float Rounded(uint32_t type, float value) {
  uint8_t held[sizeof(float)];  // as wide as the widest type
  StoreReal(type, held, &value, 1);
  LoadReal(type, held, &value, 1);
  return value;
}

inline int64_t LoadInteger(uint32_t type, const uint8_t* from) {
  switch (type) {
    case kBangInt8:
      return *reinterpret_cast<const int8_t*>(from);
    case kBangUint8:
      return *from;
    case kBangInt16: {
      int16_t value;
      std::memcpy(&value, from, 2);
      return value;
    }
    case kBangUint16: {
      uint16_t value;
      std::memcpy(&value, from, 2);
      return value;
    }
    case kBangInt32: {
      int32_t value;
      std::memcpy(&value, from, 4);
      return value;
    }
    default: {
      uint32_t value;
      std::memcpy(&value, from, 4);
      return value;
    }
  }
}

/*! \brief The low bytes of an integer. */
inline void StoreInteger(int64_t bytes, uint8_t* to, int64_t value) {
  std::memcpy(to, &value, static_cast<size_t>(bytes));
}

}  // namespace uir::bang
