// SPDX-License-Identifier: Apache-2.0
// Conversions with rounding modes.
//
// Which there are: the table of `Cast` in the Ascend C API documentation for Atlas A2. What is out of range of an
// integer type becomes its nearest value, NaN becomes 0; int32 to int16 and int64 to int32 do so too. Floating point
// out of range becomes infinity.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "device/ascendc/engine.h"
#include "device/ascendc/loops.h"
#include "device/engine/rounding.h"

namespace uir::ascendc {

namespace {

using namespace engine::rounding;  // NOLINT(build/namespaces): the modes, as this file names them

/*! \brief A number of a type, read and written as double; exact for all but int64. */
template <uint32_t kType>
struct As;
template <>
struct As<kUirFloat> {
  using T = float;
  template <int kMode>
  static float From(double value) {
    return FromExact<kMode>(value);
  }
  template <int kMode>
  static float FromExact(double value) {
    auto nearest = static_cast<float>(value);
    double back = nearest;
    if (kMode == kRint || kMode == kNone || back == value || value != value) return nearest;
    float below = back < value ? nearest : std::nextafter(nearest, -INFINITY);
    float above = back > value ? nearest : std::nextafter(nearest, INFINITY);
    switch (kMode) {
      case kFloor:
        return below;
      case kCeil:
        return above;
      case kRound: {
        double down = value - below, up = static_cast<double>(above) - value;
        if (down == up) return value > 0 ? above : below;
        return down < up ? below : above;
      }
      default:
        return value > 0 ? below : above;
    }
  }
  static double To(float value) { return value; }
};
template <typename I>
struct AsInteger {
  using T = I;
  template <int kMode>
  static I From(double value) {
    if (value != value) return 0;
    double whole = Integral<kMode>(value);
    // The largest int64 is no double; the next one is.
    if (whole >= static_cast<double>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
    if (whole <= static_cast<double>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
    return static_cast<I>(whole);
  }
  static double To(I value) { return static_cast<double>(value); }
};
template <>
struct As<kUirInt8> : AsInteger<int8_t> {};
template <>
struct As<kUirUint8> : AsInteger<uint8_t> {};
template <>
struct As<kUirInt16> : AsInteger<int16_t> {};
template <>
struct As<kUirInt32> : AsInteger<int32_t> {};
template <>
struct As<kUirInt64> : AsInteger<int64_t> {};
template <>
struct As<kUirHalf> {
  using T = uint16_t;
  template <int kMode>
  static uint16_t From(double value) {
    return NarrowTo<kMode>(value, uir_simt::kHalf);
  }
  static double To(uint16_t bits) { return uir_simt::widen(bits, uir_simt::kHalf); }
};
template <>
struct As<kUirBfloat16> {
  using T = uint16_t;
  template <int kMode>
  static uint16_t From(double value) {
    return NarrowTo<kMode>(value, uir_simt::kBfloat16);
  }
  static double To(uint16_t bits) { return uir_simt::widen(bits, uir_simt::kBfloat16); }
};

template <uint32_t kFrom, uint32_t kTo, int kMode>
void CastLoop(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  using S = typename As<kFrom>::T;
  using T = typename As<kTo>::T;
  // Read before it is written: source and target may begin at one address.
  for (int64_t i = 0; i < n; ++i) {
    S from;
    std::memcpy(&from, a + i * static_cast<int64_t>(sizeof(S)), sizeof(S));
    T to = As<kTo>::template From<kMode>(As<kFrom>::To(from));
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &to, sizeof(T));
  }
}

// The frequent ones, faster.
void HalfToFloat(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  FloatOfHalf(reinterpret_cast<float*>(dst), reinterpret_cast<const uint16_t*>(a), n);
}
void Bfloat16ToFloat(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  FloatOfBfloat16(reinterpret_cast<float*>(dst), reinterpret_cast<const uint16_t*>(a), n);
}
void FloatToHalf(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  HalfOfFloat(reinterpret_cast<uint16_t*>(dst), reinterpret_cast<const float*>(a), n);
}
void FloatToBfloat16(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  Bfloat16OfFloat(reinterpret_cast<uint16_t*>(dst), reinterpret_cast<const float*>(a), n);
}
void Int64ToInt32(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t from;
    std::memcpy(&from, a + i * 8, 8);
    from = from > INT32_MAX ? INT32_MAX : from < INT32_MIN ? INT32_MIN : from;
    auto to = static_cast<int32_t>(from);
    std::memcpy(dst + i * 4, &to, 4);
  }
}

/*! \brief Not over double, which has too few bits. */
template <int kMode>
void Int64ToFloat(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t from;
    std::memcpy(&from, a + i * 8, 8);
    auto near = static_cast<float>(from);
    if (kMode != kRint && near < 0x1p63f && static_cast<int64_t>(near) != from) {
      float below = static_cast<int64_t>(near) < from ? near : std::nextafter(near, -INFINITY);
      float above = static_cast<int64_t>(near) < from ? std::nextafter(near, INFINITY) : near;
      bool up = kMode == kCeil || (kMode == kTrunc && from < 0);
      if (kMode == kRound) {
        auto down = static_cast<int64_t>(below);
        // Above the largest float below 2^63 the distance is that between the two.
        double gap = static_cast<double>(above) - below, part = static_cast<double>(from - down);
        up = part * 2 == gap ? from > 0 : part * 2 > gap;
      }
      near = up ? above : below;
    }
    std::memcpy(dst + i * 4, &near, 4);
  }
}

using CastKey = std::tuple<uint32_t, uint32_t, int>;
using CastTable = std::map<CastKey, Loop>;

template <uint32_t kFrom, uint32_t kTo>
void AddRounded(CastTable* table) {
  (*table)[{kFrom, kTo, kRint}] = CastLoop<kFrom, kTo, kRint>;
  (*table)[{kFrom, kTo, kFloor}] = CastLoop<kFrom, kTo, kFloor>;
  (*table)[{kFrom, kTo, kCeil}] = CastLoop<kFrom, kTo, kCeil>;
  (*table)[{kFrom, kTo, kRound}] = CastLoop<kFrom, kTo, kRound>;
  (*table)[{kFrom, kTo, kTrunc}] = CastLoop<kFrom, kTo, kTrunc>;
}
template <uint32_t kFrom, uint32_t kTo>
void AddPlain(CastTable* table) {
  (*table)[{kFrom, kTo, kNone}] = CastLoop<kFrom, kTo, kRint>;
}
template <uint32_t kFrom, uint32_t kTo>
void AddBoth(CastTable* table) {
  AddRounded<kFrom, kTo>(table);
  AddPlain<kFrom, kTo>(table);
}

const CastTable& Casts() {
  static const auto* table = [] {
    auto* t = new CastTable();
    AddPlain<kUirInt8, kUirHalf>(t);
    AddPlain<kUirUint8, kUirHalf>(t);
    AddBoth<kUirInt16, kUirHalf>(t);
    AddPlain<kUirInt16, kUirFloat>(t);
    AddBoth<kUirHalf, kUirInt8>(t);
    AddBoth<kUirHalf, kUirUint8>(t);
    AddRounded<kUirHalf, kUirInt16>(t);
    AddRounded<kUirHalf, kUirInt32>(t);
    (*t)[{kUirHalf, kUirFloat, kNone}] = HalfToFloat;
    AddRounded<kUirBfloat16, kUirInt32>(t);
    (*t)[{kUirBfloat16, kUirFloat, kNone}] = Bfloat16ToFloat;
    AddPlain<kUirInt32, kUirInt16>(t);
    AddBoth<kUirInt32, kUirFloat>(t);
    AddPlain<kUirInt32, kUirInt64>(t);
    AddRounded<kUirFloat, kUirInt16>(t);
    AddRounded<kUirFloat, kUirHalf>(t);
    (*t)[{kUirFloat, kUirHalf, kOdd}] = CastLoop<kUirFloat, kUirHalf, kOdd>;
    (*t)[{kUirFloat, kUirHalf, kNone}] = (*t)[{kUirFloat, kUirHalf, kRint}] = FloatToHalf;
    AddRounded<kUirFloat, kUirBfloat16>(t);
    (*t)[{kUirFloat, kUirBfloat16, kRint}] = FloatToBfloat16;
    AddRounded<kUirFloat, kUirInt32>(t);
    AddRounded<kUirFloat, kUirInt64>(t);
    (*t)[{kUirInt64, kUirFloat, kRint}] = Int64ToFloat<kRint>;
    (*t)[{kUirInt64, kUirFloat, kFloor}] = Int64ToFloat<kFloor>;
    (*t)[{kUirInt64, kUirFloat, kCeil}] = Int64ToFloat<kCeil>;
    (*t)[{kUirInt64, kUirFloat, kRound}] = Int64ToFloat<kRound>;
    (*t)[{kUirInt64, kUirFloat, kTrunc}] = Int64ToFloat<kTrunc>;
    (*t)[{kUirInt64, kUirInt32, kNone}] = Int64ToInt32;
    return t;
  }();
  return *table;
}

template <int kMode>
void RoundLoop(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    reinterpret_cast<float*>(dst)[i] = Integral<kMode>(reinterpret_cast<const float*>(a)[i]);
  }
}

}  // namespace

Loop CastOf(uint32_t from, uint32_t to, int mode) {
  if (from == kUirFloat && to == kUirFloat) {
    // To an integer that stays a float.
    constexpr Loop loops[] = {
        nullptr, RoundLoop<kRint>, RoundLoop<kFloor>, RoundLoop<kCeil>, RoundLoop<kRound>, RoundLoop<kTrunc>, nullptr};
    return mode >= 0 && mode <= kOdd ? loops[mode] : nullptr;
  }
  auto found = Casts().find({from, to, mode});
  return found == Casts().end() ? nullptr : found->second;
}

}  // namespace uir::ascendc
