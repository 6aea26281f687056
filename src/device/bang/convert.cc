// SPDX-License-Identifier: Apache-2.0
// Conversions between types, by rounding mode.
//
// `rn` rounds to nearest with halves to even, `rd` to nearest with halves away from zero, `tz` towards zero, `dn`
// down, `up` up, `oz` away from zero. What is out of range of an integer type becomes its nearest value and NaN
// becomes 0, which the documents do not say. Integers count in units of 2^fix_position.
//
// A target may be its source's bytes where the vendor's header says so (narrower types and floats as integers), or a
// public kernel does so (`int322float`, kernels/sparse_conv/get_indice_pairs of mlu-ops).
#include <cmath>
#include <limits>
#include <map>

#include "device/bang/call.h"
#include "device/bang/lanes.h"
#include "device/engine/rounding.h"

namespace uir::bang {

namespace {

using engine::rounding::Mode;

struct Conversion {
  uint32_t from;
  uint32_t to;
  /*! \brief Of the name without a mode. */
  Mode mode{Mode::kRint};
  /*! \brief Whether the header says that the target may not be the source; no wider target may. */
  bool apart{false};
};

/*! \brief Names without the mode. */
const std::map<std::string, Conversion>& Conversions() {
  static const auto* table = new std::map<std::string, Conversion>{
      {"half2float", {kBangHalf, kBangFloat}},         {"float2half", {kBangFloat, kBangHalf}},
      {"bfloat162float", {kBangBfloat16, kBangFloat}}, {"float2bfloat16", {kBangFloat, kBangBfloat16}},
      {"float2int32", {kBangFloat, kBangInt32}},       {"float2int", {kBangFloat, kBangInt32}},
      {"float2int16", {kBangFloat, kBangInt16}},       {"float2int8", {kBangFloat, kBangInt8}},
      {"int322float", {kBangInt32, kBangFloat}},       {"int2float", {kBangInt32, kBangFloat, Mode::kTrunc, true}},
      {"int162float", {kBangInt16, kBangFloat}},       {"int82float", {kBangInt8, kBangFloat}},
      {"half2int16", {kBangHalf, kBangInt16}},         {"half2int8", {kBangHalf, kBangInt8}},
      {"half2short", {kBangHalf, kBangInt16}},         {"short2half", {kBangInt16, kBangHalf}},
      {"int162half", {kBangInt16, kBangHalf}},         {"int82half", {kBangInt8, kBangHalf}},
      {"uchar2half", {kBangUint8, kBangHalf}},
  };
  return *table;
}

struct Found {
  const Conversion* conversion{nullptr};
  Mode mode{Mode::kRint};
};

Found ConversionOf(const std::string& name) {
  static const std::map<std::string, Mode> modes = {{"_rn", Mode::kRint},  {"_rd", Mode::kRound}, {"_tz", Mode::kTrunc},
                                                    {"_dn", Mode::kFloor}, {"_up", Mode::kCeil},  {"_oz", Mode::kAway}};
  auto whole = Conversions().find(name);
  if (whole != Conversions().end()) return {&whole->second, whole->second.mode};
  if (name.size() < 3) return {};
  auto mode = modes.find(name.substr(name.size() - 3));
  auto found = Conversions().find(name.substr(0, name.size() - 3));
  if (mode == modes.end() || found == Conversions().end()) return {};
  return {&found->second, mode->second};
}

template <int kMode>
double Whole(double value) {
  return engine::rounding::Integral<kMode>(value);
}
template <int kMode>
uint16_t Half(double value) {
  return engine::rounding::NarrowTo<kMode>(value, uir_simt::kHalf);
}
template <int kMode>
uint16_t Brain(double value) {
  return engine::rounding::NarrowTo<kMode>(value, uir_simt::kBfloat16);
}

/*! \brief A function template's instance for a mode that is known only now. */
#define UIR_BANG_FOR_MODE(FUNCTION)                            \
  (mode == Mode::kRint    ? FUNCTION<engine::rounding::kRint>  \
   : mode == Mode::kRound ? FUNCTION<engine::rounding::kRound> \
   : mode == Mode::kTrunc ? FUNCTION<engine::rounding::kTrunc> \
   : mode == Mode::kFloor ? FUNCTION<engine::rounding::kFloor> \
   : mode == Mode::kCeil  ? FUNCTION<engine::rounding::kCeil>  \
                          : FUNCTION<engine::rounding::kAway>)

double Read(uint32_t type, const uint8_t* from) {
  if (!IsFloating(type)) return static_cast<double>(LoadInteger(type, from));
  float value;
  LoadReal(type, from, &value, 1);
  return value;
}

void WriteInteger(uint32_t type, uint8_t* to, double whole) {
  int64_t bytes = TypeBytes(type);
  double most = std::ldexp(1.0, static_cast<int>(8 * bytes - 1)) - 1, least = -most - 1;
  double value = whole != whole ? 0 : whole > most ? most : whole < least ? least : whole;
  StoreInteger(bytes, to, static_cast<int64_t>(value));
}

void RunConversion(const Given& given) {
  Found found = ConversionOf(given.name());
  const Conversion& conversion = *found.conversion;
  Mode mode = found.mode;
  int64_t n = given.number(0), from = TypeBytes(conversion.from), to = TypeBytes(conversion.to);
  int64_t position = given.call.numbers > 1 ? given.number(1) : 0;
  if (!given.Positive(n, "the count")) return;
  given.instruction.Need(position >= -127 && position <= 127, "size",
                         "fix_position is " + std::to_string(position) + "; -127 to 127 are possible");
  Operand& source = given.Source(1, "source", n * from);
  Operand& target = given.Target(n * to);
  // Narrower numbers may take the place of wider ones, which are read first.
  if (conversion.apart || to > from || target.data != source.data) given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * std::max(from, to));
  if (!machine.values) return;
  bool all = source.Knows(0, n * from);
  auto whole = UIR_BANG_FOR_MODE(Whole);
  auto half = UIR_BANG_FOR_MODE(Half);
  auto brain = UIR_BANG_FOR_MODE(Brain);
  for (int64_t i = 0; i < n; ++i) {
    bool known = all || source.Knows(i * from, from);
    double value = Read(conversion.from, source.data + i * from);
    if (position) value = std::ldexp(value, static_cast<int>(IsFloating(conversion.from) ? -position : position));
    uint8_t* place = target.data + i * to;
    if (!IsFloating(conversion.to)) {
      WriteInteger(conversion.to, place, whole(value));
    } else if (conversion.to == kBangFloat) {
      auto real = static_cast<float>(value);
      if (mode == Mode::kTrunc && std::fabs(real) > std::fabs(value)) real = std::nextafter(real, 0.0f);
      StoreReal(kBangFloat, place, &real, 1);
    } else {
      StoreInteger(2, place, conversion.to == kBangHalf ? half(value) : brain(value));
    }
    if (!all) target.Learn(i * to, to, known);
  }
  if (all) target.Learn(0, n * to);
}

#undef UIR_BANG_FOR_MODE

}  // namespace

Handler ConversionHandlerOf(const std::string& name) { return ConversionOf(name).conversion ? RunConversion : nullptr; }

}  // namespace uir::bang
