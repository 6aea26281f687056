// SPDX-License-Identifier: Apache-2.0
// What is known of numbers.
#pragma once

#include <algorithm>
#include <limits>

namespace uir::codegen::bang {

/*! \brief All numbers from `low` to `high`, and NaN. */
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool HasZero() const { return low <= 0 && high >= 0; }
  Interval With(const Interval& other) const { return {std::min(low, other.low), std::max(high, other.high)}; }
};

}  // namespace uir::codegen::bang
