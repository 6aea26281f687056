// SPDX-License-Identifier: Apache-2.0
#include "codegen/number.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>

namespace uir::codegen {

namespace {

/*! \brief A float format narrower than double: bits of the fraction, least exponent, greatest finite value. */
struct Format {
  const char* name;
  int fraction;
  int least_exponent;
  double greatest;
  bool infinite;
};

constexpr Format kFormats[] = {
    {"fp32", 23, -126, 3.4028234663852886e38, true},
    {"fp16", 10, -14, 65504.0, true},
    {"bf16", 7, -126, 3.3895313892515355e38, true},
    {"fp8e4m3", 3, -6, 448.0, false},
    {"fp8e5m2", 2, -14, 57344.0, true},
};

}  // namespace

double RoundFloat(const std::string& dtype, double value) {
  const Format* found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& row) { return dtype == row.name; });
  // fp64 holds what it is given
  if (found == std::end(kFormats) || std::isnan(value)) return value;
  const Format& format = *found;
  if (std::isinf(value)) return format.infinite ? value : std::numeric_limits<double>::quiet_NaN();
  if (value == 0) return value;
  int exponent = std::max(std::ilogb(value), format.least_exponent);
  double step = std::ldexp(1.0, exponent - format.fraction);
  // the quotient is exact, and nearbyint takes halves to even
  double rounded = std::nearbyint(value / step) * step;
  if (std::fabs(rounded) <= format.greatest) return rounded;
  return format.infinite ? std::copysign(INFINITY, value) : std::numeric_limits<double>::quiet_NaN();
}

int64_t LowestInt(Kind kind, int bytes) { return kind == Kind::kInt ? -(int64_t{1} << (8 * bytes - 2)) * 2 : 0; }

uint64_t HighestInt(Kind kind, int bytes) {
  if (kind == Kind::kBool) return 1;
  uint64_t all = ~uint64_t{0} >> (64 - 8 * bytes);
  return kind == Kind::kInt ? all >> 1 : all;
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

std::string WholeLiteral(Kind kind, int bytes, const std::string& stored, uint64_t bits) {
  if (kind == Kind::kBool) return bits != 0 ? "true" : "false";
  if (kind == Kind::kUint) {
    bits &= HighestInt(kind, bytes);
    return bytes == 4   ? std::to_string(bits) + "u"
           : bytes == 8 ? std::string("uint64_t(") + std::to_string(bits) + "u)"
                        : stored + "(" + std::to_string(bits) + ")";
  }
  int unused = 64 - 8 * bytes;
  int64_t value = static_cast<int64_t>(bits << unused) >> unused;
  // the least value has no literal: its magnitude is out of range
  std::string text = value == LowestInt(kind, bytes) ? std::to_string(value + 1) + (bytes == 8 ? "LL - 1" : " - 1")
                                                     : std::to_string(value) + (bytes == 8 ? "LL" : "");
  if (bytes == 4) return value == LowestInt(kind, bytes) ? "(" + text + ")" : text;
  return stored + "(" + text + ")";
}

double WholeValue(Kind kind, int bytes, double value) {
  if (kind == Kind::kBool) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  double low = static_cast<double>(LowestInt(kind, bytes)), high = static_cast<double>(HighestInt(kind, bytes));
  return std::min(std::max(std::trunc(value), low), high);
}

uint64_t WholeBits(Kind kind, int bytes, double value) {
  double whole = WholeValue(kind, bytes, value);
  // 2^63 and 2^64 stand for the greatest integers, which no double is
  if (whole >= static_cast<double>(HighestInt(kind, bytes))) return HighestInt(kind, bytes);
  return whole < 0 ? static_cast<uint64_t>(static_cast<int64_t>(whole)) : static_cast<uint64_t>(whole);
}

}  // namespace uir::codegen
