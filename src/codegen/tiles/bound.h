// SPDX-License-Identifier: Apache-2.0
// Integers that are known when the kernel is printed, or only when it runs: bounds, counts, strides.
#pragma once

#include <cstdint>
#include <string>

#include "base/rounding.h"
#include "codegen/scope.h"

namespace uir::codegen::tiles {

/*! \brief A constant, or a C++ expression with what it may be: of type int64_t where that asks for it, else int32_t. */
struct Bound {
  std::string text;
  /*! \brief Least and greatest value. */
  Range range;
  /*! \brief How tightly the text binds. */
  Precedence precedence = Precedence::kAtom;
  /*! \brief Of an expression: a divisor of every value. */
  int64_t multiple_of = 1;

  static Bound Of(int64_t value) { return {std::to_string(value), {value, value}}; }
  bool Constant() const { return range.Constant(); }
  /*! \brief Whether k > 0 surely divides it. */
  bool IsMultiple(int64_t k) const { return (Constant() ? range.low : multiple_of) % k == 0; }
  int64_t least() const { return range.low; }
  int64_t most() const { return range.high; }
  /*! \brief The text, parenthesised where it binds less tightly than `at_least`. */
  std::string Text(Precedence at_least) const;
};

using uir::CeilDiv;

Bound operator+(const Bound& a, const Bound& b);
Bound operator-(const Bound& a, const Bound& b);
Bound operator*(const Bound& a, int64_t factor);
/*! \brief a / unit rounded down; a >= 0. */
Bound FloorDiv(const Bound& a, int64_t unit);
/*! \brief a - a / unit * unit; a >= 0. */
Bound Mod(const Bound& a, int64_t unit);
/*! \brief a / unit rounded up; a >= 0. */
Bound CeilDiv(const Bound& a, int64_t unit);

}  // namespace uir::codegen::tiles
