// SPDX-License-Identifier: Apache-2.0
// Sizes that are written as expressions of named ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace uir::library {

/*! Sizes by their names. */
using NamedSizes = std::vector<std::pair<std::string_view, int64_t>>;

/*! Where an expression stands, for messages. */
struct ExpressionPlace {
  std::string op, field;
};

//! The number that an expression is: whole numbers, names, + - *, parentheses, div(a, b), mod(a, b) and min(a, b), of
//! which quotients are rounded down. \throws ValueError It is no expression, or has another name in it. \throws
//! SizeError A number on the way needs more than 63 bits, or a divisor is not positive.
int64_t Evaluate(std::string_view text, const NamedSizes& sizes, const ExpressionPlace& place);

}  // namespace uir::library
