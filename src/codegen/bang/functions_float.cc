// SPDX-License-Identifier: Apache-2.0
// Functions of fp32 that this device has forms of its own for.
#include <map>
#include <vector>

#include "codegen/bang/program.h"
#include "codegen/tiles/functions.h"

namespace uir::codegen::bang {
namespace {

constexpr double kInverseLn2 = 1.44269504088896341;
// ln 2 in two floats: whole multiples of 2^-8 up to 2^8 times the first are exact
constexpr double kLn2High = 0.69140625, kLn2Low = 0.00174093055994530942;
// added to a float below 2^14 it leaves eight bits behind the point
constexpr double kEighthShifter = 49152;

Value Device(Program& p, const char* api, Value x) { return p.Plain(api, "fp32", {x}); }

// 1 / (1 + 2^-(x log2 e)); the error of the power is that of x's rounding, so beyond -4 that of the result is
// (1.25 |x| + 6) 2^-24, and where the result is about 1 two ULP
Value Sigmoid(Program& p, Value x, double) {
  return Device(p, "recip", p.Adds(Device(p, "pow2", p.Muls(x, -kInverseLn2)), 1));
}

// 1 - 2 / (1 + e^2x), whose absolute error is two ULP of 1: not near 0
Value Tanh(Program& p, Value x, double) {
  Value under = p.Adds(Device(p, "pow2", p.Muls(x, 2 * kInverseLn2)), 1);
  return tiles::TanhNearZero(p, x, p.Adds(p.Muls(Device(p, "recip", under), -2), 1));
}

using UnaryFn = Value (*)(Program& p, Value x, double c);

const std::map<std::string, UnaryFn>& Unary() {
  static const std::map<std::string, UnaryFn> table = {
      {"exp2", [](Program& p, Value x, double) { return Device(p, "pow2", x); }},
      {"log2", [](Program& p, Value x, double) { return Device(p, "log2", x); }},
      {"rsqrt", [](Program& p, Value x, double) { return Device(p, "rsqrt", x); }},
      {"recip", [](Program& p, Value x, double) { return Device(p, "recip", x); }},
      {"rdivs", [](Program& p, Value x, double c) { return p.Muls(Device(p, "recip", x), c); }},
      {"sigmoid", Sigmoid},
      {"tanh", Tanh},
      {"sin", [](Program& p, Value x, double) { return Device(p, "sin", x); }},
      {"cos", [](Program& p, Value x, double) { return Device(p, "cos", x); }},
      {"tan", [](Program& p, Value x, double) { return p.Div(Device(p, "sin", x), Device(p, "cos", x)); }},
  };
  return table;
}

/*! \brief Whole quotient and rest of what is not negative: a rounded quotient may be one off. */
void Divide(Program& p, Value a, Value b, Value* quotient, Value* rest) {
  Value q = p.Whole(p.Div(a, b), "TRUNC");
  tiles::Two product = tiles::ExactProduct(p, q, b);
  Value left = p.Sub(p.Sub(a, product.high), product.low);
  Value below = p.Compare("LT", left, 0.0);
  q = p.Sub(q, below);
  left = p.Select(below, p.Add(left, b), left);
  Value beyond = p.Compare("GE", left, b);
  *quotient = p.Add(q, beyond);
  *rest = p.Select(beyond, p.Sub(left, b), left);
}

Value WholeQuotient(Program& p, bool floors, Value x, Value y) {
  Value q, rest;
  Value a = p.Apply("Abs", x), b = p.Apply("Abs", y), plain = p.Div(x, y);
  tiles::ScaleToMiddle(p, &a, &b);
  Divide(p, a, b, &q, &rest);
  Value one = p.Fill(1.0);
  Value sign = p.Mul(tiles::CopySign(p, one, x), tiles::CopySign(p, one, y));
  if (floors) {
    Value inexact = p.Compare("NE", rest, 0.0);
    q = p.Add(q, p.Mul(inexact, p.Compare("LT", sign, 0.0)));
  }
  // a quotient that is 0 as divided, as by infinity, is not one below
  Value made = p.Select(p.Compare("EQ", plain, 0.0), plain, p.Mul(q, sign));
  // what is not finite, or too large for a product that is exact, is as divided
  Value sane = p.Compare("LT", p.Apply("Abs", plain), 4194304.0);
  return p.Select(sane, made, p.Whole(plain, floors ? "FLOOR" : "TRUNC"));
}

}  // namespace

// n / 2^8 is next to x / ln 2: 2^n has no error but the function's, and the rest r is below 2^-9, so that
// e^r = (2 + (r + 2) r) / 2 to a relative 2^-30.  Half the power and twice the series: what is finite stays so
Value Exp(Program& p, Value x) {
  if (p.narrow()) return Device(p, "pow2", p.Muls(x, kInverseLn2));
  Value held = p.Maxs(p.Mins(x, 89), -104.5);
  Value shifted = p.Adds(p.Muls(held, kInverseLn2), kEighthShifter);
  Value n = p.Adds(shifted, -kEighthShifter), less = p.Adds(shifted, -kEighthShifter - 1);
  Value rest = p.Sub(p.Sub(held, p.Muls(n, kLn2High)), p.Muls(n, kLn2Low));
  Value series = p.Mul(p.Adds(rest, 2), rest);
  Value made = p.Mul(p.Adds(series, 2), Device(p, "pow2", less));
  p.Know(made, {0});
  return made;
}

Value CentredErf(Program& p, Value x) {
  // -log2((1 + erf x) / (1 - erf x)) / x by x^2, fitted on [0, 4] by the error of the result; it falls beyond
  static const std::vector<double> wide = {-3.2558156105292366,    -0.29651850220025844,   0.0005320224157235409,
                                           0.0018054412478652982,  -0.0002588540186288985, 1.72706833062727e-05,
                                           -4.5863526521709784e-07};
  static const std::vector<double> narrow = {-3.255752831198469, -0.2970059210742729, 0.0014399361489403023,
                                             0.0011947897412165702, -9.261456563856014e-05};
  // of a scaled x by coefficients that are scaled
  std::vector<double> slope = p.narrow() ? narrow : wide;
  double scale = p.Unscaled(&x), factor = scale;
  for (double& c : slope) {
    c *= factor;
    factor *= scale * scale;
  }
  Value power = Device(p, "pow2", p.Mul(p.Polynomial(p.Mul(x, x), slope), x));
  return p.Adds(p.Muls(Device(p, "recip", p.Adds(power, 1)), 2), -1);
}

Value UnaryOf(Program& p, const std::string& name, Value x, double param) {
  auto found = Unary().find(name);
  return found == Unary().end() ? tiles::FloatUnary(p, name, x, param) : found->second(p, x, param);
}

Value BinaryOf(Program& p, const std::string& name, Value x, Value y) {
  if (name == "floordiv" || name == "truncdiv") return WholeQuotient(p, name == "floordiv", x, y);
  return tiles::FloatBinary(p, name, x, y);
}

}  // namespace uir::codegen::bang
