// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>

#include <cstdint>
#include <cstring>

#include "library/onednn_api.h"

namespace uir::library {

enum class DType : int { kF16, kBF16, kF32, kF64 };

constexpr size_t SizeOf(DType type) { return type == DType::kF64 ? 8 : type == DType::kF32 ? 4 : 2; }

inline DType DTypeOf(DLDataType type, const char* op, const char* operand) {
  if (type.lanes == 1) {
    if (type.code == kDLFloat && type.bits == 16) return DType::kF16;
    if (type.code == kDLBfloat && type.bits == 16) return DType::kBF16;
    if (type.code == kDLFloat && type.bits == 32) return DType::kF32;
    if (type.code == kDLFloat && type.bits == 64) return DType::kF64;
  }
  TVM_FFI_THROW(ValueError) << "Library operator " << op << ": operand " << operand << " has type code "
                            << static_cast<int>(type.code) << " with " << static_cast<int>(type.bits)
                            << " bits.\n  limit:  float16, bfloat16, float32 and float64"
                            << "\n  remedy: cast it, or compute it in a kernel of its own.";
  TVM_FFI_UNREACHABLE();
}

/*! The library's number for the type; it has no float64. */
inline dnn::DataType LibraryType(DType type) {
  return type == DType::kF16 ? dnn::kF16 : type == DType::kBF16 ? dnn::kBF16 : dnn::kF32;
}

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

inline float FromHalf(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) return FloatOfBits(sign | 0x7f800000u | (magnitude << 13));
  // The exponent moves from bias 15 to 127; multiplying does it right for
  // subnormal numbers too.
  const float value = FloatOfBits(magnitude << 13) * FloatOfBits(0x77800000u);
  return FloatOfBits(BitsOfFloat(value) | sign);
}

inline uint16_t ToHalf(float f) {
  const uint32_t bits = BitsOfFloat(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 lets the float adder round to the spacing 2^-24, to
    // nearest even.
    const float shifted = FloatOfBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (BitsOfFloat(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float FromBFloat(uint16_t h) { return FloatOfBits(static_cast<uint32_t>(h) << 16); }

inline uint16_t ToBFloat(float f) {
  const uint32_t bits = BitsOfFloat(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/*! Element `index` of an array of `type`, as T (float, or double for float64).
 */
template <typename T>
T Load(const char* data, DType type, int64_t index) {
  switch (type) {
    case DType::kF16:
      return static_cast<T>(FromHalf(reinterpret_cast<const uint16_t*>(data)[index]));
    case DType::kBF16:
      return static_cast<T>(FromBFloat(reinterpret_cast<const uint16_t*>(data)[index]));
    case DType::kF32:
      return static_cast<T>(reinterpret_cast<const float*>(data)[index]);
    case DType::kF64:
      return static_cast<T>(reinterpret_cast<const double*>(data)[index]);
  }
  return T(0);
}

template <typename T>
void Store(char* data, DType type, int64_t index, T value) {
  switch (type) {
    case DType::kF16:
      reinterpret_cast<uint16_t*>(data)[index] = ToHalf(static_cast<float>(value));
      return;
    case DType::kBF16:
      reinterpret_cast<uint16_t*>(data)[index] = ToBFloat(static_cast<float>(value));
      return;
    case DType::kF32:
      reinterpret_cast<float*>(data)[index] = static_cast<float>(value);
      return;
    case DType::kF64:
      reinterpret_cast<double*>(data)[index] = static_cast<double>(value);
      return;
  }
}

}  // namespace uir::library
