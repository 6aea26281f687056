// SPDX-License-Identifier: Apache-2.0
// The element types of a core, and literals of them.
#include "codegen/bang/scalar.h"

#include <cmath>
#include <cstring>

namespace uir::codegen::bang {

namespace {

std::string FloatText(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return Digits(value, true);
}

}  // namespace

const ScalarType& TypeOf(const std::string& dtype, const std::string& where) {
  return codegen::TypeOf(dtype, "A core of an MLU", where);
}

int64_t BytesOf(const std::string& dtype) { return TypeOf(dtype).bytes; }

int64_t BfloatBits(const ffi::Any& value) {
  auto whole = value.as<int64_t>();
  float held = static_cast<float>(RoundFloat("bf16", whole ? static_cast<double>(*whole) : value.cast<double>()));
  int32_t bits = 0;
  std::memcpy(&bits, &held, sizeof(bits));
  return bits >> 16;
}

std::string LiteralOf(const ScalarType& type, const ffi::Any& value) {
  auto whole = value.as<int64_t>();
  if (type.kind == Kind::kFloat) {
    std::string text = FloatText(RoundFloat(type.name, whole ? static_cast<double>(*whole) : value.cast<double>()));
    return type.bytes == 4 ? text : "(" + std::string(type.stored) + ")" + text;
  }
  bool exact = whole && type.kind != Kind::kBool;
  uint64_t bits = exact ? static_cast<uint64_t>(*whole) : WholeBits(type.kind, type.bytes, value.cast<double>());
  // the type of a literal chooses the width that a fill writes: `true` would be an int's
  return WholeLiteral(type.kind == Kind::kBool ? Kind::kUint : type.kind, type.bytes, type.stored, bits);
}

}  // namespace uir::codegen::bang
