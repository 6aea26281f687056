// SPDX-License-Identifier: Apache-2.0
// What is known of an integer: its least and greatest value, and the residue class that it lies in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "igraph/checked.h"

namespace uir {

/*! \brief All values from low to high, both included.  Arithmetic throws IGraphError beyond 64 bits. */
struct Range {
  int64_t low = 0;
  int64_t high = 0;

  bool Constant() const { return low == high; }
  bool FitsInt() const { return low >= INT32_MIN && high <= INT32_MAX; }
  bool Within(Range other) const { return low >= other.low && high <= other.high; }
};

inline Range operator+(Range a, Range b) { return {CheckedAdd(a.low, b.low), CheckedAdd(a.high, b.high)}; }
inline Range operator*(Range a, int64_t factor) {
  int64_t x = CheckedMul(a.low, factor), y = CheckedMul(a.high, factor);
  return factor < 0 ? Range{y, x} : Range{x, y};
}
inline Range operator*(Range a, Range b) {
  Range x = a * b.low, y = a * b.high;
  return {std::min(x.low, y.low), std::max(x.high, y.high)};
}
inline Range operator-(Range a, Range b) { return a + b * -1; }
/*! \brief Quotients by k > 0, rounded down. */
inline Range FloorDiv(Range a, int64_t k) { return {FloorDivInt(a.low, k), FloorDivInt(a.high, k)}; }
inline Range Least(Range a, Range b) { return {std::min(a.low, b.low), std::min(a.high, b.high)}; }
inline Range Greatest(Range a, Range b) { return {std::max(a.low, b.low), std::max(a.high, b.high)}; }

/*! \brief All values are modulus * t + remainder for integers t; with the modulus 0 there is one value. */
struct Congruence {
  int64_t modulus = 1;
  int64_t remainder = 0;

  static Congruence Of(int64_t value) { return {0, value}; }
  /*! \brief Whether k > 0 surely divides every value. */
  bool IsMultiple(int64_t k) const { return modulus % k == 0 && remainder % k == 0; }
  /*! \brief The greatest known divisor of every value; 0 where all are 0. */
  uint64_t Divisor() const { return std::gcd(Absolute(modulus), Absolute(remainder)); }
};

/*! \brief The same with a modulus g > 0 and a remainder in [0, g), for a g that divides the modulus. */
inline Congruence Coarser(Congruence a, int64_t g) { return {g, FloorModInt(a.remainder, g)}; }

/*! \brief Remainders by k > 0 of values of a range and a residue class. */
inline Range Mod(Range a, Congruence class_of, int64_t k) {
  int64_t quotient = FloorDivInt(a.low, k);
  if (quotient == FloorDivInt(a.high, k)) return {FloorModInt(a.low, k), FloorModInt(a.high, k)};
  Congruence kept = Coarser(class_of, std::gcd(class_of.modulus, k));
  return {kept.remainder, k - kept.modulus + kept.remainder};
}

}  // namespace uir
