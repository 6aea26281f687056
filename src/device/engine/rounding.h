// SPDX-License-Identifier: Apache-2.0
// Rounding of numbers to integers and to narrow formats, in all modes that devices have.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/simt/include/uir_simt/narrow.h"

namespace uir::engine::rounding {

/*! \brief Ways to round: to nearest even (twice), down, up, to nearest with halves away from zero, towards zero, to
 * odd, away from zero. */
enum Mode { kNone, kRint, kFloor, kCeil, kRound, kTrunc, kOdd, kAway };

/*! \brief An integer value, as a floating point number of the same type. */
template <int kMode, typename T>
T Integral(T value) {
  switch (kMode) {
    case kFloor:
      return std::floor(value);
    case kCeil:
      return std::ceil(value);
    case kRound:
      return std::round(value);
    case kTrunc:
      return std::trunc(value);
    case kAway:
      return value < 0 ? std::floor(value) : std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

/*! \brief Round a number to a format whose bit patterns are ordered as its magnitudes are. */
template <int kMode>
uint16_t NarrowTo(double value, const uir_simt::narrow_format& format) {
  using uir_simt::round_mode;
  if (kMode == kRint || kMode == kNone || value != value || std::isinf(value)) {
    return static_cast<uint16_t>(uir_simt::narrow(value, format, false));
  }
  auto low = static_cast<uint16_t>(uir_simt::narrow(value, format, false, round_mode::zero));
  double kept = uir_simt::widen(low, format);
  if (kept == value) return low;
  auto high = static_cast<uint16_t>(low + 1);  // the next magnitude; behind the largest comes infinity
  bool negative = value < 0;
  switch (kMode) {
    case kFloor:
      return negative ? high : low;
    case kCeil:
      return negative ? low : high;
    case kOdd:
      return low & 1 ? low : high;
    case kAway:
      return high;
    case kRound: {
      double next = uir_simt::widen(high, format);
      if (std::isinf(next)) next = kept * 2 - uir_simt::widen(static_cast<uint16_t>(low - 1), format);
      return std::fabs(value - kept) >= std::fabs(next - value) ? high : low;
    }
    default:
      return low;
  }
}

}  // namespace uir::engine::rounding
