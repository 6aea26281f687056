// SPDX-License-Identifier: Apache-2.0
#include "literal.h"

#include <cmath>

#include "../number.h"

namespace uir {
namespace codegen {
namespace ascend {

namespace {

double AsDouble(const tvm::ffi::Any& value) {
  if (auto whole = value.as<int64_t>()) return static_cast<double>(*whole);
  return value.cast<double>();
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "__builtin_nanf(\"\")";
  if (std::isinf(value)) return value < 0 ? "-__builtin_inff()" : "__builtin_inff()";
  return Digits(value, true);
}

}  // namespace

std::string LiteralOf(const ScalarType& type, const tvm::ffi::Any& value) {
  if (type.kind != Kind::kFloat) {
    auto whole = value.as<int64_t>();
    uint64_t bits = whole && type.kind != Kind::kBool ? static_cast<uint64_t>(*whole)
                                                      : WholeBits(type.kind, type.bytes, AsDouble(value));
    // a bool is a byte of a tensor
    return type.kind == Kind::kBool ? std::string("uint8_t(") + (bits ? "1)" : "0)")
                                    : WholeLiteral(type.kind, type.bytes, type.stored, bits);
  }
  std::string text = FloatText(RoundFloat(type.name, AsDouble(value)));
  return type.bytes == 4 ? text : std::string(type.from_float) + "(" + text + ")";
}

bool IsZeroBits(const ScalarType& type, const tvm::ffi::Any& value) {
  double number = AsDouble(value);
  if (type.kind == Kind::kFloat) number = RoundFloat(type.name, number);
  return number == 0 && !std::signbit(number);
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
