// SPDX-License-Identifier: Apache-2.0
#include "bound.h"

#include <algorithm>

namespace uir {
namespace codegen {
namespace tiles {

std::string Bound::Text(Precedence at_least) const {
  bool loose = static_cast<int>(precedence) < static_cast<int>(at_least);
  return loose ? "(" + text + ")" : text;
}

Bound operator+(const Bound& a, const Bound& b) {
  Range range{a.range.low + b.range.low, a.range.high + b.range.high};
  if (range.Constant()) return Bound::Of(range.low);
  if (a.Constant() && a.range.low == 0) return b;
  if (b.Constant() && b.range.low == 0) return a;
  if (b.Constant() && b.range.low < 0) return a - Bound::Of(-b.range.low);
  return {a.text + " + " + b.text, range, Precedence::kSum};
}

Bound operator-(const Bound& a, const Bound& b) {
  Range range{a.range.low - b.range.high, a.range.high - b.range.low};
  if (range.Constant()) return Bound::Of(range.low);
  if (b.Constant() && b.range.low == 0) return a;
  return {a.text + " - " + b.Text(Precedence::kProduct), range, Precedence::kSum};
}

Bound operator*(const Bound& a, int64_t factor) {
  int64_t x = a.range.low * factor, y = a.range.high * factor;
  Range range{std::min(x, y), std::max(x, y)};
  if (range.Constant()) return Bound::Of(range.low);
  if (factor == 1) return a;
  return {a.Text(Precedence::kProduct) + " * " + std::to_string(factor), range, Precedence::kProduct};
}

Bound FloorDiv(const Bound& a, int64_t unit) {
  Range range{a.range.low / unit, a.range.high / unit};
  if (range.Constant()) return Bound::Of(range.low);
  if (unit == 1) return a;
  return {a.Text(Precedence::kProduct) + " / " + std::to_string(unit), range, Precedence::kProduct};
}

Bound Mod(const Bound& a, int64_t unit) {
  if (a.Constant()) return Bound::Of(a.range.low % unit);
  if (unit == 1) return Bound::Of(0);
  bool same = a.range.low / unit == a.range.high / unit;
  Range range = same ? Range{a.range.low % unit, a.range.high % unit} : Range{0, unit - 1};
  return {a.Text(Precedence::kProduct) + " % " + std::to_string(unit), range, Precedence::kProduct};
}

Bound CeilDiv(const Bound& a, int64_t unit) { return FloorDiv(a + Bound::Of(unit - 1), unit); }

}  // namespace tiles
}  // namespace codegen
}  // namespace uir
