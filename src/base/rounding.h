// SPDX-License-Identifier: Apache-2.0
// Whole numbers rounded to multiples.
#pragma once

#include <type_traits>

namespace uir {

/*! \brief value / unit rounded up; value >= 0, unit > 0. */
template <typename Value, typename Unit>
constexpr std::common_type_t<Value, Unit> CeilDiv(Value value, Unit unit) {
  return (value + unit - 1) / unit;
}

/*! \brief The least multiple of `unit` that is not less than `value`. */
template <typename Value, typename Unit>
constexpr std::common_type_t<Value, Unit> RoundUp(Value value, Unit unit) {
  return CeilDiv(value, unit) * unit;
}

}  // namespace uir
