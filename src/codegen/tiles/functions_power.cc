// SPDX-License-Identifier: Apache-2.0
// Logarithms and powers of fp32, some of them in two floats.
#include <cmath>
#include <limits>

#include "codegen/tiles/functions.h"

namespace uir::codegen::tiles {
namespace {

// ln 2 in two floats, the first short enough that whole multiples up to 2^8 are exact
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723e-06;
constexpr double kInverseLn2 = 1.44269504088896341;

/*! \brief A float as two of half as many bits each: products of such halves are exact. */
Two Halves(Program& p, Value x) {
  Value scaled = p.Muls(x, 4097), high = p.Sub(scaled, p.Sub(scaled, x));
  return {high, p.Sub(x, high)};
}

/*! \brief x + y exactly, where |x| >= |y|. */
Two QuickSum(Program& p, Value x, Value y) {
  Value sum = p.Add(x, y);
  return {sum, p.Sub(y, p.Sub(sum, x))};
}

/*! \brief x + y exactly. */
Two ExactSum(Program& p, Value x, Value y) {
  Value sum = p.Add(x, y), part = p.Sub(sum, x);
  return {sum, p.Add(p.Sub(x, p.Sub(sum, part)), p.Sub(y, part))};
}

/*! \brief ln of what is positive and finite, to about 2^-33 of its scale. */
Two LogOf(Program& p, Value x) {
  // subnormals are scaled up first
  Value small = p.Compare("LT", x, std::ldexp(1.0, -126));
  Value scaled = p.Select(small, p.Muls(x, std::ldexp(1.0, 24)), x);
  Value shift = p.Select(small, p.Fill(-24), 0.0);
  // x = m 2^e with m in [1, 2), then in [sqrt(1/2), sqrt(2))
  Value biased, m;
  p.SplitFloat(scaled, &biased, &m);
  Value e = p.Add(p.Adds(biased, -127), shift);
  Value large = p.Compare("GT", m, 1.41421356);
  m = p.Select(large, p.Muls(m, 0.5), m);
  e = p.Select(large, p.Adds(e, 1), e);
  // s = (m - 1) / (m + 1) in two floats; ln m = 2 s + s^3 R(s^2)
  Value f = p.Adds(m, -1);
  Two d = ExactSum(p, m, p.Fill(1));
  Value s = p.Div(f, d.high);
  Two product = ExactProduct(p, s, d.high);
  Value left = p.Sub(p.Sub(p.Sub(f, product.high), product.low), p.Mul(s, d.low));
  Value s_low = p.Div(left, d.high);
  Value square = p.Mul(s, s);
  Value tail =
      p.Mul(p.Mul(square, s),
            p.Polynomial(square, {0.6666666507637827, 0.40000435692228786, 0.2853195687359775, 0.23670827853817722}));
  Two high = ExactSum(p, p.Muls(e, kLn2High), p.Muls(s, 2));
  Value low = p.Add(p.Add(high.low, p.Muls(e, kLn2Low)), p.Add(tail, p.Muls(s_low, 2)));
  return QuickSum(p, high.high, low);
}

/*! \brief e^(high + low), |high| held to where the result is 0 or infinite. */
Value ExpOf(Program& p, Two x) {
  Value high = p.Maxs(p.Mins(x.high, 90), -105);
  Value n = p.Whole(p.Muls(high, kInverseLn2), "RINT");
  Value rest = p.Sub(p.Sub(high, p.Muls(n, kLn2High)), p.Muls(n, kLn2Low));
  return p.TimesPowerOfTwo(p.Apply("Exp", p.Add(rest, x.low)), n);
}

}  // namespace

Two ExactProduct(Program& p, Value x, Value y) {
  Value product = p.Mul(x, y);
  Two a = Halves(p, x), b = Halves(p, y);
  Value error = p.Sub(p.Mul(a.high, b.high), product);
  error = p.Add(p.Add(error, p.Mul(a.high, b.low)), p.Mul(a.low, b.high));
  return {product, p.Add(error, p.Mul(a.low, b.low))};
}

// ln(u) x / (u - 1) with u = 1 + x as rounded, whose errors cancel; x where u is 1, ln(u) where u is x
Value Log1p(Program& p, Value x) {
  Value u = p.Adds(x, 1), log = p.Apply("Ln", u);
  Value scaled = p.Mul(log, p.Div(x, p.Adds(u, -1)));
  Value most = p.Select(p.Compare("EQ", u, x), log, scaled);
  return p.Select(p.Compare("EQ", u, 1.0), x, most);
}

Value Power(Program& p, Value x, Value y) {
  Value a = p.Apply("Abs", x);
  // logarithm of what is positive and finite; 0, infinity and NaN are put in below
  Value held = p.Maxs(p.Mins(a, 3.4028234663852886e38), 1.4012984643248171e-45);
  Two log = LogOf(p, held);
  Value y_held = p.Maxs(p.Mins(y, 1e30), -1e30);
  // beyond this the result is 0, 1 or infinite whatever the low part says, and splitting would overflow
  Two product = ExactProduct(p, log.high, y_held);
  Value low = p.Add(product.low, p.Mul(log.low, y_held));
  // an overflow of the splits leaves NaN in the low part: it does not matter there
  Value sane = p.Compare("LT", p.Apply("Abs", low), 1.0);
  low = p.Select(sane, low, 0.0);
  Value result = ExpOf(p, {product.high, low});
  // 0 ^ y and infinity ^ y by the sign of y
  Value up = p.Select(p.Compare("GT", y, 0.0), p.Fill(kInfinity), 0.0);
  Value down = p.Select(p.Compare("GT", y, 0.0), p.Fill(0.0), kInfinity);
  result = p.Select(p.Compare("EQ", a, kInfinity), up, result);
  result = p.Select(p.Compare("EQ", a, 0.0), down, result);
  // below zero, and for -0: a sign for odd y; no number for fractions of what is finite and below
  Value negative = p.Compare("LT", CopySign(p, p.Fill(1), x), 0.0);
  // an infinite power is even
  Value whole = p.Compare("EQ", p.Whole(y, "TRUNC"), y), truncated = p.Whole(y_held, "TRUNC");
  Value odd = p.Sub(truncated, p.Muls(p.Whole(p.Muls(truncated, 0.5), "TRUNC"), 2));
  Value flipped = p.Select(p.Compare("NE", odd, 0.0), p.Muls(result, -1), result);
  Value with_sign = p.Select(whole, p.Select(negative, flipped, result), result);
  Value none = p.Select(whole, with_sign, std::numeric_limits<double>::quiet_NaN());
  Value below = p.Select(p.Compare("LT", a, kInfinity), none, with_sign);
  Value made = p.Select(p.Compare("LT", x, 0.0), below, with_sign);
  // NaN stays, but 1 ^ anything and anything ^ 0 are 1
  made = p.Select(p.Compare("EQ", x, x), made, x);
  made = p.Select(p.Compare("EQ", y, y), made, y);
  made = p.Select(p.Compare("EQ", x, 1.0), p.Fill(1), made);
  return p.Select(p.Compare("EQ", y, 0.0), p.Fill(1), made);
}

}  // namespace uir::codegen::tiles
