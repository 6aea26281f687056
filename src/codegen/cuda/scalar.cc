// SPDX-License-Identifier: Apache-2.0
/*!
 * \file scalar.cc
 * \brief The table of element types, and numbers as C++ literals.
 */
#include "scalar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "../error.h"

namespace uir {
namespace codegen {
namespace cuda {
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

/*! \brief A float format narrower than double: bits of the fraction, least exponent, greatest finite value. */
struct Format {
  const char* name;
  int fraction;
  int least_exponent;
  double greatest;
  bool infinite;
};

constexpr Format kFormats[] = {
    {"fp32", 23, -126, 3.4028234663852886e38, true}, {"fp16", 10, -14, 65504.0, true},
    {"bf16", 7, -126, 3.3895313892515355e38, true},  {"fp8e4m3", 3, -6, 448.0, false},
    {"fp8e5m2", 2, -14, 57344.0, true},
};
// clang-format on

double RoundFloat(const Format& format, double value) {
  if (std::isnan(value)) return value;
  if (std::isinf(value)) return format.infinite ? value : std::numeric_limits<double>::quiet_NaN();
  if (value == 0) return value;
  int exponent = std::max(std::ilogb(value), format.least_exponent);
  double step = std::ldexp(1.0, exponent - format.fraction);
  // the quotient is exact, and nearbyint takes halves to even
  double rounded = std::nearbyint(value / step) * step;
  if (std::fabs(rounded) <= format.greatest) return rounded;
  return format.infinite ? std::copysign(INFINITY, value) : std::numeric_limits<double>::quiet_NaN();
}

int64_t LowestInt(const ScalarType& type) {
  return type.kind == Kind::kInt ? -(int64_t{1} << (8 * type.bytes - 2)) * 2 : 0;
}

/*! \brief The greatest value, as the bits of an unsigned number. */
uint64_t HighestInt(const ScalarType& type) {
  if (type.kind == Kind::kBool) return 1;
  uint64_t all = ~uint64_t{0} >> (64 - 8 * type.bytes);
  return type.kind == Kind::kInt ? all >> 1 : all;
}

std::string Digits(double value, bool single) {
  char text[40];
  for (int precision = 1; precision <= 17; ++precision) {
    std::snprintf(text, sizeof(text), "%.*g", precision, value);
    if (single ? std::strtof(text, nullptr) == static_cast<float>(value) : std::strtod(text, nullptr) == value) break;
  }
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return single ? out + "f" : out;
}

std::string FloatLiteral(bool single, double value) {
  if (std::isnan(value)) return single ? "__int_as_float(0x7fffffff)" : "__longlong_as_double(0x7fffffffffffffffLL)";
  if (std::isinf(value)) {
    std::string sign = value < 0 ? "-" : "";
    return sign + (single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000LL)");
  }
  return Digits(value, single);
}

std::string WholeLiteral(const ScalarType& type, uint64_t bits) {
  if (type.kind == Kind::kBool) return bits != 0 ? "true" : "false";
  if (type.kind == Kind::kUint) {
    bits &= HighestInt(type);
    return type.bytes == 4   ? std::to_string(bits) + "u"
           : type.bytes == 8 ? std::string("uint64_t(") + std::to_string(bits) + "u)"
                             : std::string(type.stored) + "(" + std::to_string(bits) + ")";
  }
  int unused = 64 - 8 * type.bytes;
  int64_t value = static_cast<int64_t>(bits << unused) >> unused;
  // the least value has no literal: its magnitude is out of range
  std::string text = value == LowestInt(type) ? std::to_string(value + 1) + (type.bytes == 8 ? "LL - 1" : " - 1")
                                              : std::to_string(value) + (type.bytes == 8 ? "LL" : "");
  if (type.bytes == 4) return value == LowestInt(type) ? "(" + text + ")" : text;
  return std::string(type.stored) + "(" + text + ")";
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
  if (type.kind == Kind::kBool) return value != 0 ? 1 : 0;
  if (type.kind != Kind::kFloat) {
    if (std::isnan(value)) return 0;
    double low = static_cast<double>(LowestInt(type)), high = static_cast<double>(HighestInt(type));
    return std::min(std::max(std::trunc(value), low), high);
  }
  for (const Format& format : kFormats) {
    if (std::string(format.name) == type.name) return RoundFloat(format, value);
  }
  return value;
}

std::string ComputeLiteral(const ScalarType& type, double value) {
  if (type.kind == Kind::kFloat) return FloatLiteral(type.bytes < 8, RoundTo(type, value));
  double whole = RoundTo(type, value);
  // 2^63 and 2^64 stand for the greatest integers, which no double is
  if (type.kind != Kind::kBool && whole >= static_cast<double>(HighestInt(type))) {
    return WholeLiteral(type, HighestInt(type));
  }
  return WholeLiteral(type,
                      whole < 0 ? static_cast<uint64_t>(static_cast<int64_t>(whole)) : static_cast<uint64_t>(whole));
}

std::string ComputeLiteral(const ScalarType& type, int64_t value) {
  if (type.kind == Kind::kFloat) return ComputeLiteral(type, static_cast<double>(value));
  return WholeLiteral(type, static_cast<uint64_t>(value));
}

std::string LimitLiteral(const ScalarType& type, bool highest, const ScalarType& as) {
  return WholeLiteral(as, highest ? HighestInt(type) : static_cast<uint64_t>(LowestInt(type)));
}

std::vector<std::string> ConversionHelpers(const ScalarType& type) {
  if (!type.by_helper) return {};
  return {std::string("to_") + type.name, std::string("from_") + type.name};
}

std::string StoredLiteral(const ScalarType& type, double value) { return Narrow(type, ComputeLiteral(type, value)); }

std::string StoredLiteral(const ScalarType& type, int64_t value) { return Narrow(type, ComputeLiteral(type, value)); }

}  // namespace cuda
}  // namespace codegen
}  // namespace uir
