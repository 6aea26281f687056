// SPDX-License-Identifier: Apache-2.0
/*!
 * \file scalar.cc
 * \brief The table of element types.
 */
#include "scalar.h"

#include <cmath>
#include <cstring>

#include "../error.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

constexpr ScalarType kTypes[] = {
    {"fp32", Kind::kFloat, 4, "float"},      {"fp16", Kind::kFloat, 2, "half"},
    {"bf16", Kind::kFloat, 2, "bfloat16_t"}, {"int8", Kind::kInt, 1, "int8_t"},
    {"int16", Kind::kInt, 2, "int16_t"},     {"int32", Kind::kInt, 4, "int32_t"},
    {"int64", Kind::kInt, 8, "int64_t"},     {"uint8", Kind::kUint, 1, "uint8_t"},
    {"uint16", Kind::kUint, 2, "uint16_t"},  {"uint32", Kind::kUint, 4, "uint32_t"},
    {"uint64", Kind::kUint, 8, "uint64_t"},  {"bool", Kind::kBool, 1, "uint8_t"},
};

/*! \brief Dtypes of the iGraph that a core has no type for, and why. */
constexpr struct {
  const char* name;
  const char* what;
} kRefused[] = {
    {"fp64", "A core of an MLU has no fp64."},
    {"fp8e4m3", "A core of an MLU has no fp8."},
    {"fp8e5m2", "A core of an MLU has no fp8."},
};

std::string FloatText(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return Digits(value, true);
}

}  // namespace

const ScalarType* FindType(const std::string& dtype) {
  for (const ScalarType& type : kTypes) {
    if (dtype == type.name) return &type;
  }
  return nullptr;
}

const ScalarType& TypeOf(const std::string& dtype, const std::string& where) {
  if (const ScalarType* type = FindType(dtype)) return *type;
  for (const auto& refused : kRefused) {
    if (dtype == refused.name) {
      CodegenError(refused.what, where, "values of " + dtype, "fp32, fp16, bf16, integers and bool",
                   "compute it in fp32, or on the host");
    }
  }
  CodegenError("'" + dtype + "' is no dtype.", where);
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

}  // namespace bang
}  // namespace codegen
}  // namespace uir
