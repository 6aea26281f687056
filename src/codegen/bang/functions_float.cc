// SPDX-License-Identifier: Apache-2.0
/*!
 * \file functions_float.cc
 * \brief Functions of fp32 that this device has forms of its own for.
 */
#include <map>

#include "../tiles/functions.h"
#include "program.h"

namespace uir {
namespace codegen {
namespace bang {
namespace {

constexpr double kInverseLn2 = 1.44269504088896341;
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723e-06;

Value Device(Program& p, const char* api, Value x) { return p.Plain(api, "fp32", {x}); }

using UnaryFn = Value (*)(Program& p, Value x, double c);

const std::map<std::string, UnaryFn>& Unary() {
  static const std::map<std::string, UnaryFn> table = {
      {"exp2", [](Program& p, Value x, double) { return Device(p, "pow2", x); }},
      {"log2", [](Program& p, Value x, double) { return Device(p, "log2", x); }},
      {"rsqrt", [](Program& p, Value x, double) { return Device(p, "rsqrt", x); }},
      {"recip", [](Program& p, Value x, double) { return Device(p, "recip", x); }},
      {"rdivs", [](Program& p, Value x, double c) { return p.Muls(Device(p, "recip", x), c); }},
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
  Divide(p, a, b, &q, &rest);
  Value one = p.Fill(1.0);
  Value sign = p.Mul(tiles::CopySign(p, one, x), tiles::CopySign(p, one, y));
  if (floors) {
    Value inexact = p.Compare("NE", rest, 0.0);
    q = p.Add(q, p.Mul(inexact, p.Compare("LT", sign, 0.0)));
  }
  Value made = p.Mul(q, sign);
  // what is not finite, or too large to have a fraction, is as divided
  Value sane = p.Compare("LT", p.Apply("Abs", plain), 4194304.0);
  return p.Select(sane, made, plain);
}

}  // namespace

// n is the whole part of x / ln 2 or one beside it: 2^n has no error, and 2^f is near 1
Value Exp(Program& p, Value x) {
  Value held = p.Maxs(p.Mins(x, 89), -105);
  Value n = p.Nearest(p.Adds(p.Muls(held, kInverseLn2), -0.5));
  Value rest = p.Sub(p.Sub(held, p.Muls(n, kLn2High)), p.Muls(n, kLn2Low));
  return p.Mul(Device(p, "pow2", p.Muls(rest, kInverseLn2)), Device(p, "pow2", n));
}

Value UnaryOf(Program& p, const std::string& name, Value x, double param) {
  auto found = Unary().find(name);
  return found == Unary().end() ? tiles::FloatUnary(p, name, x, param) : found->second(p, x, param);
}

Value BinaryOf(Program& p, const std::string& name, Value x, Value y) {
  if (name == "floordiv" || name == "truncdiv") return WholeQuotient(p, name == "floordiv", x, y);
  return tiles::FloatBinary(p, name, x, y);
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
