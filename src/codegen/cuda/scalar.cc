// SPDX-License-Identifier: Apache-2.0
// The table of element types, and numbers as C++ literals.
#include "codegen/cuda/scalar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "codegen/error.h"

namespace uir::codegen::cuda {
namespace {

// clang-format off
constexpr ScalarType kTypes[] = {
    {"fp64", Kind::kFloat, 8, "double", "double", "fp64", "$x", "$x", ""},
    {"fp32", Kind::kFloat, 4, "float", "float", "fp32", "$x", "$x", ""},
    {"fp16", Kind::kFloat, 2, "__half", "float", "fp32", "__half2float($x)", "__float2half_rn($x)", "cuda_fp16.h"},
    {"bf16", Kind::kFloat, 2, "__nv_bfloat16", "float", "fp32", "__bfloat162float($x)", "__float2bfloat16_rn($x)",
     "cuda_bf16.h"},
    {"fp8e4m3", Kind::kFloat, 1, "__nv_fp8_e4m3", "float", "fp32", "from_fp8e4m3($x)", "to_fp8e4m3($x)",
     "cuda_fp8.h", true},
    {"fp8e5m2", Kind::kFloat, 1, "__nv_fp8_e5m2", "float", "fp32", "from_fp8e5m2($x)", "to_fp8e5m2($x)",
     "cuda_fp8.h", true},
    {"int8", Kind::kInt, 1, "int8_t", "int8_t", "int32", "$x", "$x", ""},
    {"int16", Kind::kInt, 2, "int16_t", "int16_t", "int32", "$x", "$x", ""},
    {"int32", Kind::kInt, 4, "int32_t", "int32_t", "int32", "$x", "$x", ""},
    {"int64", Kind::kInt, 8, "int64_t", "int64_t", "int64", "$x", "$x", ""},
    {"uint8", Kind::kUint, 1, "uint8_t", "uint8_t", "uint32", "$x", "$x", ""},
    {"uint16", Kind::kUint, 2, "uint16_t", "uint16_t", "uint32", "$x", "$x", ""},
    {"uint32", Kind::kUint, 4, "uint32_t", "uint32_t", "uint32", "$x", "$x", ""},
    {"uint64", Kind::kUint, 8, "uint64_t", "uint64_t", "uint64", "$x", "$x", ""},
    {"bool", Kind::kBool, 1, "bool", "bool", "int32", "$x", "$x", ""},
};

// clang-format on

std::string FloatLiteral(bool single, double value) {
  if (std::isnan(value)) return single ? "__int_as_float(0x7fffffff)" : "__longlong_as_double(0x7fffffffffffffffLL)";
  if (std::isinf(value)) {
    std::string sign = value < 0 ? "-" : "";
    return sign + (single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000LL)");
  }
  return Digits(value, single);
}

std::string LiteralOfBits(const ScalarType& type, uint64_t bits) {
  return codegen::WholeLiteral(type.kind, type.bytes, type.stored, bits);
}

std::string Replace(const char* pattern, const std::string& value) {
  std::string out = pattern;
  size_t at = out.find("$x");
  return out.replace(at, 2, value);
}

}  // namespace

const ScalarType& TypeOf(const std::string& dtype) {
  for (const ScalarType& type : kTypes) {
    if (dtype == type.name) return type;
  }
  CodegenError("CUDA C++ has no type for the dtype " + dtype + ".", "", "one of the dtypes of an iGraph");
}

bool IsNarrow(const ScalarType& type) { return type.kind == Kind::kFloat && type.bytes < 4; }

std::string Widen(const ScalarType& type, const std::string& value) { return Replace(type.widen, value); }

std::string Narrow(const ScalarType& type, const std::string& value) { return Replace(type.narrow, value); }

double RoundTo(const ScalarType& type, double value) {
  if (type.kind == Kind::kFloat) return RoundFloat(type.name, value);
  return WholeValue(type.kind, type.bytes, value);
}

std::string ComputeLiteral(const ScalarType& type, double value) {
  if (type.kind == Kind::kFloat) return FloatLiteral(type.bytes < 8, RoundFloat(type.name, value));
  return LiteralOfBits(type, WholeBits(type.kind, type.bytes, value));
}

std::string ComputeLiteral(const ScalarType& type, int64_t value) {
  if (type.kind == Kind::kFloat) return ComputeLiteral(type, static_cast<double>(value));
  return LiteralOfBits(type, static_cast<uint64_t>(value));
}

std::string LimitLiteral(const ScalarType& type, bool highest, const ScalarType& as) {
  return LiteralOfBits(
      as, highest ? HighestInt(type.kind, type.bytes) : static_cast<uint64_t>(LowestInt(type.kind, type.bytes)));
}

std::vector<std::string> ConversionHelpers(const ScalarType& type) {
  if (!type.by_helper) return {};
  return {std::string("to_") + type.name, std::string("from_") + type.name};
}

std::string StoredLiteral(const ScalarType& type, double value) { return Narrow(type, ComputeLiteral(type, value)); }

std::string StoredLiteral(const ScalarType& type, int64_t value) { return Narrow(type, ComputeLiteral(type, value)); }

}  // namespace uir::codegen::cuda
