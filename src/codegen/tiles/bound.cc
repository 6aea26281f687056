// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/bound.h"

#include <cstdlib>
#include <numeric>

namespace uir::codegen::tiles {

namespace {

/*! \brief A divisor of all values; 0 where there is none but 0. */
int64_t DivisorOf(const Bound& a) { return a.Constant() ? a.range.low : a.multiple_of; }

/*! \brief What divides sums and differences of two. */
int64_t Common(const Bound& a, const Bound& b) { return std::gcd(DivisorOf(a), DivisorOf(b)); }

}  // namespace

std::string Bound::Text(Precedence at_least) const {
  bool loose = static_cast<int>(precedence) < static_cast<int>(at_least);
  return loose ? "(" + text + ")" : text;
}

Bound operator+(const Bound& a, const Bound& b) {
  Range range = a.range + b.range;
  if (range.Constant()) return Bound::Of(range.low);
  if (a.Constant() && a.range.low == 0) return b;
  if (b.Constant() && b.range.low == 0) return a;
  if (b.Constant() && b.range.low < 0) return a - Bound::Of(-b.range.low);
  return {a.text + " + " + b.text, range, Precedence::kSum, Common(a, b)};
}

Bound operator-(const Bound& a, const Bound& b) {
  Range range = a.range - b.range;
  if (range.Constant()) return Bound::Of(range.low);
  if (b.Constant() && b.range.low == 0) return a;
  return {a.text + " - " + b.Text(Precedence::kProduct), range, Precedence::kSum, Common(a, b)};
}

Bound operator*(const Bound& a, int64_t factor) {
  Range range = a.range * factor;
  if (range.Constant()) return Bound::Of(range.low);
  if (factor == 1) return a;
  return {a.Text(Precedence::kProduct) + " * " + std::to_string(factor), range, Precedence::kProduct,
          a.multiple_of * std::abs(factor)};
}

Bound FloorDiv(const Bound& a, int64_t unit) {
  Range range = uir::FloorDiv(a.range, unit);
  if (range.Constant()) return Bound::Of(range.low);
  if (unit == 1) return a;
  const int64_t rest = a.multiple_of % unit == 0 ? a.multiple_of / unit : 1;
  return {a.Text(Precedence::kProduct) + " / " + std::to_string(unit), range, Precedence::kProduct, rest};
}

Bound Mod(const Bound& a, int64_t unit) {
  if (a.Constant()) return Bound::Of(a.range.low % unit);
  if (a.multiple_of % unit == 0) return Bound::Of(0);
  return {a.Text(Precedence::kProduct) + " % " + std::to_string(unit), uir::Mod(a.range, {}, unit),
          Precedence::kProduct};
}

Bound CeilDiv(const Bound& a, int64_t unit) {
  if (a.IsMultiple(unit)) return FloorDiv(a, unit);
  return FloorDiv(a + Bound::Of(unit - 1), unit);
}

}  // namespace uir::codegen::tiles
