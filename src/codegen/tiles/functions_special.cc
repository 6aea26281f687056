// SPDX-License-Identifier: Apache-2.0
// The error function, and division of floats with a remainder.
#include <tvm/ffi/error.h>

#include <limits>
#include <utility>
#include <vector>

#include "codegen/tiles/functions.h"

namespace uir::codegen::tiles {

namespace {

constexpr double kLarge = 0x1p60, kToMiddle = 0x1p-64;
// beyond it a rounded quotient may be more than one off
constexpr double kMostQuotient = 4194304;

/*! \brief Two polynomials of one degree, step by step side by side: no step waits for the one before it. */
std::pair<Value, Value> BothPolynomials(Program& p, Value x, const std::vector<double>& c,
                                        const std::vector<double>& d) {
  TVM_FFI_CHECK(c.size() == d.size() && c.size() >= 2, InternalError) << "two polynomials of one degree";
  Value a = p.Muls(x, c.back()), b = p.Muls(x, d.back());
  for (size_t k = c.size() - 2; k > 0; --k) {
    a = p.Adds(a, c[k]);
    b = p.Adds(b, d[k]);
    a = p.Mul(a, x);
    b = p.Mul(b, x);
  }
  a = p.Adds(a, c[0]);
  return {a, p.Adds(b, d[0])};
}

}  // namespace

// x P(x^2) / Q(x^2), fitted on [0, 3.92], where the function is 1 to fp32; relative error about 4e-7.  The quotient
// grows on and is 1 + 2e-6 where x is held, so that held to 1 it is 1, and 1 - erf x is 0 however the quotient rounds
Value Erf(Program& p, Value x) {
  Value held = p.Maxs(p.Mins(x, 4.2), -4.2), square = p.Mul(held, held);
  auto [over, under] = BothPolynomials(p, square,
                                       {1.1283791460750638, 0.19040816689568046, 0.05274891776677775,
                                        0.003765684394497757, 0.00028488317470698243, 2.0500576882796394e-06},
                                       {1.0, 0.5020775847008698, 0.11410978788386195, 0.014969348851156401,
                                        0.0011625501252692206, 3.809143836478776e-05});
  return p.Maxs(p.Mins(p.Div(p.Mul(held, over), under), 1), -1);
}

Value ScaleToMiddle(Program& p, Value* a, Value* b) {
  Value large = p.Compare("GT", *a, kLarge), small = p.Compare("LT", *a, 1 / kLarge);
  auto scale = [&](double down) { return p.Select(small, p.Fill(1 / down), p.Select(large, p.Fill(down), p.Fill(1))); };
  Value to = scale(kToMiddle);
  *a = p.Mul(*a, to);
  *b = p.Mul(*b, to);
  return scale(1 / kToMiddle);
}

Value FloatDivision(Program& p, const std::string& name, Value x, Value y) {
  if (name == "floordiv") return p.Whole(p.Div(x, y), "FLOOR");
  if (name == "truncdiv") return p.Whole(p.Div(x, y), "TRUNC");
  Value a = p.Apply("Abs", x), b = p.Apply("Abs", y);
  Value back = ScaleToMiddle(p, &a, &b);
  Value quotient = p.Whole(p.Div(a, b), "TRUNC");
  Value few = p.Compare("LE", quotient, kMostQuotient);
  Two product = ExactProduct(p, quotient, b);
  Value rest = p.Sub(p.Sub(a, product.high), product.low);
  // the quotient was rounded: it may be one off
  rest = p.Select(p.Compare("LT", rest, 0.0), p.Add(rest, b), rest);
  rest = p.Select(p.Compare("GE", rest, b), p.Sub(rest, b), rest);
  rest = p.Select(few, rest, std::numeric_limits<double>::quiet_NaN());
  // a finite number modulo infinity is itself
  rest = p.Mul(p.Select(p.Compare("LT", a, b), a, rest), back);
  Value truncated = CopySign(p, rest, x);
  if (name == "truncmod") return truncated;
  // floor: the sign of the divisor
  Value signs = p.Compare("LT", p.Mul(CopySign(p, p.Fill(1), x), CopySign(p, p.Fill(1), y)), 0.0);
  Value moved = p.Select(signs, p.Add(truncated, y), truncated);
  return p.Select(p.Compare("EQ", rest, 0.0), CopySign(p, rest, y), moved);
}

}  // namespace uir::codegen::tiles
