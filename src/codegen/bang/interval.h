// SPDX-License-Identifier: Apache-2.0
/*!
 * \file interval.h
 * \brief What is known of numbers.
 */
#ifndef UIR_CODEGEN_BANG_INTERVAL_H_
#define UIR_CODEGEN_BANG_INTERVAL_H_

#include <algorithm>
#include <limits>

namespace uir {
namespace codegen {
namespace bang {

/*! \brief All numbers from `low` to `high`, and NaN. */
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool HasZero() const { return low <= 0 && high >= 0; }
  Interval With(const Interval& other) const { return {std::min(low, other.low), std::max(high, other.high)}; }
};

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_INTERVAL_H_
