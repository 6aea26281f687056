// SPDX-License-Identifier: Apache-2.0
// The table of functions of fp32.
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "codegen/tiles/functions.h"

namespace uir::codegen::tiles {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

using UnaryFn = Value (*)(Program& p, Value x, double c);
using BinaryFn = Value (*)(Program& p, Value x, Value y);

bool PowerOfTwo(double c) {
  int exponent = 0;
  return c != 0 && std::isfinite(c) && std::fabs(std::frexp(c, &exponent)) == 0.5 && std::abs(exponent) < 120;
}

Value Over(Program& p, double c, Value x) { return p.Div(p.Fill(c), x); }

// the quotient is exact to half an ULP, which Reciprocal and Rsqrt of this chip are not
Value DivideBy(Program& p, Value x, double c) { return PowerOfTwo(c) ? p.Muls(x, 1 / c) : p.Div(x, p.Fill(c)); }

/*! \brief e^x as h * h with h = e^(x/2): half the results do not overflow on the way. */
Value HalfExp(Program& p, Value x) { return p.Apply("Exp", p.Muls(x, 0.5)); }

/*! \brief x (1 + x^2 c(x^2)) where |x| is below a limit, where the formula of larger x cancels; else what that gives.
 */
Value NearZero(Program& p, Value x, double limit, const std::vector<double>& c, Value far) {
  Value square = p.Mul(x, x);
  // a product, which keeps the sign of zero
  Value near = p.Mul(x, p.Adds(p.Mul(square, p.Polynomial(square, c)), 1));
  return p.Select(p.Compare("LT", p.Apply("Abs", x), limit), near, far);
}

Value Sinh(Program& p, Value x, double) {
  Value h = HalfExp(p, x);
  Value far = p.Sub(p.Mul(p.Muls(h, 0.5), h), p.Div(Over(p, 0.5, h), h));
  return NearZero(p, x, 0.75, {0.16666675542326945, 0.008332365929634562, 0.00020139510226827462}, far);
}

Value Cosh(Program& p, Value x, double) {
  Value h = HalfExp(p, x);
  return p.Add(p.Mul(p.Muls(h, 0.5), h), p.Div(Over(p, 0.5, h), h));
}

// 1 - 2 / (1 + e^2x), whose absolute error is an ULP of 1: not near 0
Value Tanh(Program& p, Value x, double) {
  Value e = p.Adds(p.Apply("Exp", p.Muls(x, 2)), 1);
  return TanhNearZero(p, x, p.Adds(Over(p, -2, e), 1));
}

Value Sigmoid(Program& p, Value x, double) { return Over(p, 1, p.Adds(p.Apply("Exp", p.Muls(x, -1)), 1)); }

// the whole part goes into the exponent, so that large powers are as exact as small ones
Value Exp2(Program& p, Value x, double) {
  Value held = p.Maxs(p.Mins(x, 129), -151);
  Value n = p.Whole(held, "RINT");
  return p.TimesPowerOfTwo(p.Apply("Exp", p.Muls(p.Sub(held, n), kLn2)), n);
}

Value Log2(Program& p, Value x, double) { return p.Muls(p.Apply("Ln", x), 1 / kLn2); }

// ln(a + sqrt(a a + 1)) as log1p(a + a a / (1 + sqrt(a a + 1))): exact near 0; what would overflow is 2a there
Value Asinh(Program& p, Value x, double) {
  Value a = p.Apply("Abs", x), held = p.Mins(a, 1e18), square = p.Mul(held, held);
  Value root = p.Adds(p.Apply("Sqrt", p.Adds(square, 1)), 1);
  Value near = Log1p(p, p.Add(held, p.Div(square, root)));
  Value far = p.Adds(p.Apply("Ln", a), kLn2);
  return CopySign(p, p.Select(p.Compare("GT", a, 1e18), far, near), x);
}

// log1p(t + sqrt(t) sqrt(t + 2)) with t = x - 1: one root of the product would have a value below -1
Value Acosh(Program& p, Value x, double) {
  Value t = p.Adds(p.Mins(x, 1e18), -1);
  Value near = Log1p(p, p.Add(t, p.Mul(p.Apply("Sqrt", t), p.Apply("Sqrt", p.Adds(t, 2)))));
  return p.Select(p.Compare("GT", x, 1e18), p.Adds(p.Apply("Ln", x), kLn2), near);
}

// of the magnitude: of what is negative 1 + 2x / (1 - x) would cancel near -1
Value Atanh(Program& p, Value x, double) {
  Value a = p.Apply("Abs", x);
  Value quotient = p.Div(p.Muls(a, 2), p.Adds(p.Muls(a, -1), 1));
  return CopySign(p, p.Muls(Log1p(p, quotient), 0.5), x);
}

// scaled twice so that the least subnormal is beyond 1, then held to [-1, 1]
Value Sign(Program& p, Value x, double) {
  double scale = std::ldexp(1.0, 100);
  return p.Maxs(p.Mins(p.Muls(p.Muls(x, scale), scale), 1), -1);
}

Value PowerOf(Program& p, Value x, double c) {
  if (c == 0.5) return p.Apply("Sqrt", x);
  if (c == -0.5) return Over(p, 1, p.Apply("Sqrt", x));
  if (c == std::trunc(c) && c != 0 && std::fabs(c) <= 8) {
    // by squares; each product adds half an ULP
    int left = static_cast<int>(std::fabs(c));
    Value square = x, product{-1};
    while (true) {
      if (left & 1) product = product.id < 0 ? square : p.Mul(product, square);
      left >>= 1;
      if (left == 0) break;
      square = p.Mul(square, square);
    }
    return c < 0 ? Over(p, 1, product) : product;
  }
  return Power(p, x, p.Fill(c));
}

const std::map<std::string, UnaryFn>& Unary() {
  static const std::map<std::string, UnaryFn> table = {
      {"copy", [](Program& p, Value x, double) { return p.Copy(x); }},
      {"adds", [](Program& p, Value x, double c) { return p.Adds(x, c); }},
      {"subs", [](Program& p, Value x, double c) { return p.Adds(x, -c); }},
      {"muls", [](Program& p, Value x, double c) { return p.Muls(x, c); }},
      {"divs", DivideBy},
      {"maxs", [](Program& p, Value x, double c) { return p.Maxs(x, c); }},
      {"mins", [](Program& p, Value x, double c) { return p.Mins(x, c); }},
      {"pows", PowerOf},
      {"rsubs", [](Program& p, Value x, double c) { return p.Adds(p.Muls(x, -1), c); }},
      {"rdivs", [](Program& p, Value x, double c) { return Over(p, c, x); }},
      {"exp", [](Program& p, Value x, double) { return p.Apply("Exp", x); }},
      {"exp2", Exp2},
      {"log", [](Program& p, Value x, double) { return p.Apply("Ln", x); }},
      {"log2", Log2},
      {"log1p", [](Program& p, Value x, double) { return Log1p(p, x); }},
      {"sqrt", [](Program& p, Value x, double) { return p.Apply("Sqrt", x); }},
      {"rsqrt", [](Program& p, Value x, double) { return Over(p, 1, p.Apply("Sqrt", x)); }},
      {"recip", [](Program& p, Value x, double) { return Over(p, 1, x); }},
      {"abs", [](Program& p, Value x, double) { return p.Apply("Abs", x); }},
      {"neg", [](Program& p, Value x, double) { return p.Muls(x, -1); }},
      {"sin", [](Program& p, Value x, double) { return Trigonometric(p, "sin", x); }},
      {"cos", [](Program& p, Value x, double) { return Trigonometric(p, "cos", x); }},
      {"tan", [](Program& p, Value x, double) { return Trigonometric(p, "tan", x); }},
      {"asin", [](Program& p, Value x, double) { return Inverse(p, "asin", x); }},
      {"acos", [](Program& p, Value x, double) { return Inverse(p, "acos", x); }},
      {"atan", [](Program& p, Value x, double) { return Inverse(p, "atan", x); }},
      {"sinh", Sinh},
      {"cosh", Cosh},
      {"tanh", Tanh},
      {"asinh", Asinh},
      {"acosh", Acosh},
      {"atanh", Atanh},
      {"erf", [](Program& p, Value x, double) { return Erf(p, x); }},
      {"sigmoid", Sigmoid},
      {"relu", [](Program& p, Value x, double) { return p.Maxs(x, 0); }},
      {"leaky_relu", [](Program& p, Value x, double c) { return p.Scalar("LeakyRelu", x, c); }},
      {"floor", [](Program& p, Value x, double) { return p.Whole(x, "FLOOR"); }},
      {"ceil", [](Program& p, Value x, double) { return p.Whole(x, "CEIL"); }},
      {"round", [](Program& p, Value x, double) { return p.Whole(x, "RINT"); }},
      {"trunc", [](Program& p, Value x, double) { return p.Whole(x, "TRUNC"); }},
      {"sign", Sign},
      {"isnan", [](Program& p, Value x, double) { return p.Compare("NE", x, x); }},
      {"isinf", [](Program& p, Value x, double) { return p.Compare("EQ", p.Apply("Abs", x), kInfinity); }},
      {"isfinite", [](Program& p, Value x, double) { return p.Compare("LT", p.Apply("Abs", x), kInfinity); }},
  };
  return table;
}

const std::map<std::string, BinaryFn>& Binary() {
  static const std::map<std::string, BinaryFn> table = {
      {"add", [](Program& p, Value x, Value y) { return p.Add(x, y); }},
      {"sub", [](Program& p, Value x, Value y) { return p.Sub(x, y); }},
      {"mul", [](Program& p, Value x, Value y) { return p.Mul(x, y); }},
      {"div", [](Program& p, Value x, Value y) { return p.Div(x, y); }},
      {"max", [](Program& p, Value x, Value y) { return p.Max(x, y); }},
      {"min", [](Program& p, Value x, Value y) { return p.Min(x, y); }},
      {"pow", Power},
      {"atan2", Atan2},
      {"floordiv", [](Program& p, Value x, Value y) { return FloatDivision(p, "floordiv", x, y); }},
      {"mod", [](Program& p, Value x, Value y) { return FloatDivision(p, "mod", x, y); }},
      {"truncdiv", [](Program& p, Value x, Value y) { return FloatDivision(p, "truncdiv", x, y); }},
      {"truncmod", [](Program& p, Value x, Value y) { return FloatDivision(p, "truncmod", x, y); }},
  };
  return table;
}

}  // namespace

Value TanhNearZero(Program& p, Value x, Value far) {
  return NearZero(
      p, x, 0.55,
      {-0.33333317559980374, 0.13332586147458117, -0.0538523107474462, 0.021071682195282663, -0.006274243634109822},
      far);
}

bool RoundsOnceInHalf(const std::string& name) {
  static const std::set<std::string> names = {"copy", "adds", "subs", "muls", "maxs", "mins", "abs",       "neg",
                                              "relu", "add",  "sub",  "mul",  "max",  "min",  "leaky_relu"};
  return names.count(name) > 0;
}

bool HasFloatUnary(const std::string& name) { return Unary().count(name) > 0; }
bool HasFloatBinary(const std::string& name) { return Binary().count(name) > 0; }

Value FloatUnary(Program& p, const std::string& name, Value x, double param) { return Unary().at(name)(p, x, param); }
Value FloatBinary(Program& p, const std::string& name, Value x, Value y) { return Binary().at(name)(p, x, y); }

}  // namespace uir::codegen::tiles
