// SPDX-License-Identifier: Apache-2.0
// Functions of int16 and int32, and 8-bit integers as int16.
#include <cstdlib>

#include "codegen/ascend/api.h"
#include "codegen/ascend/functions.h"

namespace uir::codegen::ascend {
namespace {

int WidthOf(const Program& p, Value x) { return static_cast<int>(BytesOf(p.DtypeOf(x)) * 8); }

/*! \brief -1 where x is below zero, else 0. */
Value SignMask(Program& p, Value x) { return p.Shr(x, WidthOf(p, x) - 1); }

Value Magnitude(Program& p, Value x) { return p.Max(x, Negative(p, x)); }

Value Constant(Program& p, Value like, int64_t value) {
  return p.Fill(p.DtypeOf(like), IntLiteral(value, ElementType(p.DtypeOf(like))));
}

/*! \brief 1 where x is not zero, else 0. */
Value NotZero(Program& p, Value x) {
  // the least number is its own negative: halve it out of the way
  Value bits = p.Bits("Or", x, Negative(p, x));
  return Negative(p, SignMask(p, bits));
}

/*! \brief x where the mask is -1, y where it is 0. */
Value Masked(Program& p, Value mask, Value x, Value y) { return p.Add(y, p.Mul(p.Sub(y, x), mask)); }

/*! \brief x * 2^n or x / 2^n rounded down, n being a vector: a step for every bit of n. */
Value Shift(Program& p, Value x, Value n, bool left) {
  int width = WidthOf(p, x), bits = width == 32 ? 5 : 4;
  Value value = x;
  for (int k = 0; k < bits; ++k) {
    Value mask = p.Shr(p.Shl(n, width - 1 - k), width - 1);
    Value moved = left ? p.Shl(value, 1 << k) : p.Shr(value, 1 << k);
    value = Masked(p, mask, moved, value);
  }
  // by the width or more, or a negative number: everything is shifted out
  Value beyond = Negative(p, NotZero(p, p.Shr(n, bits)));
  return Masked(p, beyond, left ? Constant(p, x, 0) : SignMask(p, x), value);
}

/*! \brief Quotient and remainder of what is not negative, by floats and two corrections; y = 0 gives anything. */
void DivideMagnitudes(Program& p, Value x, Value y, Value* quotient, Value* rest) {
  Value fy = p.Apply("Abs", p.Cast(y, "fp32", "RINT"));
  Value first = p.Cast(p.Div(p.Apply("Abs", p.Cast(x, "fp32", "RINT")), fy), "int32", "TRUNC");
  Value left = p.Sub(x, p.Mul(first, y));
  Value second = p.Cast(p.Div(p.Cast(left, "fp32", "RINT"), fy), "int32", "TRUNC");
  Value q = p.Add(first, second), r = p.Sub(left, p.Mul(second, y));
  // the quotient is one off at most
  Value low = SignMask(p, r);
  q = p.Add(q, low);
  r = p.Sub(r, p.Mul(low, y));
  Value high = p.ScalarInt("Adds", SignMask(p, p.Sub(r, y)), 1);
  *quotient = p.Add(q, high);
  *rest = p.Sub(r, p.Mul(high, y));
}

Value Divide32(Program& p, const std::string& name, Value x, Value y) {
  Value q, r;
  DivideMagnitudes(p, Magnitude(p, x), Magnitude(p, y), &q, &r);
  Value sx = SignMask(p, x), some = NotZero(p, y);
  // -1 where the signs differ
  Value differ = SignMask(p, p.Sub(p.Bits("Or", x, y), p.Bits("And", x, y)));
  // v where the mask is 0, -v where it is -1
  auto negated = [&p](Value v, Value mask) { return p.Add(v, p.Mul(p.ScalarInt("Muls", v, 2), mask)); };
  if (name == "truncdiv") return p.Mul(negated(q, differ), some);
  if (name == "truncmod") return p.Mul(negated(r, sx), some);
  // one below where signs differ and a remainder is left
  Value step = p.Mul(differ, NotZero(p, r));
  if (name == "floordiv") return p.Mul(p.Add(negated(q, differ), step), some);
  return p.Mul(p.Sub(negated(r, sx), p.Mul(step, y)), some);
}

// fp32 holds 16-bit quotients exactly: of whole numbers below 2^24 a rounded quotient never reaches the next whole one
Value Divide16(Program& p, const std::string& name, Value x, Value y) {
  Value some = NotZero(p, y);
  // not by zero
  Value divisor = p.Add(y, p.ScalarInt("Adds", Negative(p, some), 1));
  Value quotient = p.Div(p.Cast(x, "fp32", "NONE"), p.Cast(divisor, "fp32", "NONE"));
  bool floors = name == "floordiv" || name == "mod";
  Value whole = p.Cast(p.Whole(quotient, floors ? "FLOOR" : "TRUNC"), "int32", "TRUNC");
  // the quotient 2^15 wraps
  Value q = p.Cast(p.Shr(p.Shl(whole, 16), 16), "int16", "NONE");
  Value made = name == "floordiv" || name == "truncdiv" ? q : p.Sub(x, p.Mul(q, divisor));
  return p.Mul(made, some);
}

Value IntPower(Program& p, Value x, int64_t n) {
  if (n == 0) return Constant(p, x, 1);
  if (n < 0) {
    // 1 stays, -1 has a sign, all else is truncated to 0
    Value one = p.ScalarInt("Adds", Negative(p, NotZero(p, p.ScalarInt("Adds", x, -1))), 1);
    Value minus = p.ScalarInt("Adds", Negative(p, NotZero(p, p.ScalarInt("Adds", x, 1))), 1);
    return n % 2 == 0 ? p.Add(one, minus) : p.Sub(one, minus);
  }
  Value square = x, product{-1};
  for (int64_t left = n; left > 0; left >>= 1) {
    if (left & 1) product = product.id < 0 ? square : p.Mul(product, square);
    if (left > 1) square = p.Mul(square, square);
  }
  return product;
}

}  // namespace

Value Negative(Program& p, Value x) { return p.ScalarInt("Muls", x, -1); }

Value IntUnary(Program& p, const std::string& name, Value x, int64_t c) {
  if (name == "copy") return p.Copy(x);
  if (name == "adds") return p.ScalarInt("Adds", x, c);
  if (name == "subs") return p.Sub(x, Constant(p, x, c));
  if (name == "muls") return p.ScalarInt("Muls", x, c);
  if (name == "maxs") return p.ScalarInt("Maxs", x, c);
  if (name == "mins") return p.ScalarInt("Mins", x, c);
  if (name == "rsubs") return p.ScalarInt("Adds", Negative(p, x), c);
  if (name == "abs") return Magnitude(p, x);
  if (name == "neg") return Negative(p, x);
  if (name == "relu") return p.ScalarInt("Maxs", x, 0);
  if (name == "sign") return p.ScalarInt("Maxs", p.ScalarInt("Mins", x, 1), -1);
  if (name == "not") return p.BitNot(x);
  if (name == "pows") return IntPower(p, x, c);
  if (name == "ands") return p.Bits("And", x, Constant(p, x, c));
  const bool inside = 0 <= c && c < WidthOf(p, x);
  if (name == "shls") return inside ? p.Shl(x, static_cast<int>(c)) : Constant(p, x, 0);
  if (name == "shrs") return inside ? p.Shr(x, static_cast<int>(c)) : SignMask(p, x);
  return {-1};
}

Value IntBinary(Program& p, const std::string& name, Value x, Value y) {
  if (name == "add") return p.Add(x, y);
  if (name == "sub") return p.Sub(x, y);
  if (name == "mul") return p.Mul(x, y);
  if (name == "max") return p.Max(x, y);
  if (name == "min") return p.Min(x, y);
  if (name == "and") return p.Bits("And", x, y);
  if (name == "or") return p.Bits("Or", x, y);
  // what both have is taken out of what either has
  if (name == "xor") return p.Sub(p.Bits("Or", x, y), p.Bits("And", x, y));
  if (name == "shl" || name == "shr") return Shift(p, x, y, name == "shl");
  if (name == "floordiv" || name == "mod" || name == "truncdiv" || name == "truncmod") {
    return WidthOf(p, x) == 32 ? Divide32(p, name, x, y) : Divide16(p, name, x, y);
  }
  return {-1};
}

// a <= b where the lesser of both is a
Value IntCompare(Program& p, const std::string& name, Value x, Value y, bool* inverted) {
  *inverted = name == "ne" || name == "lt" || name == "gt";
  if (name == "eq" || name == "ne") return p.Compare("EQ", x, y);
  bool least = name == "le" || name == "gt";
  return p.Compare("EQ", least ? p.Min(x, y) : p.Max(x, y), x);
}

Value BoolOf(Program& p, Value bits, bool inverted) {
  Value held = p.Fill("fp16", Literal(inverted ? 0 : 1, "half"));
  return p.Cast(p.Select(bits, held, inverted ? 1.0 : 0.0), "uint8", "RINT");
}

Value BitsOf(Program& p, Value flag) { return p.Compare("NE", p.Cast(flag, "fp16", "NONE"), 0.0); }

Value Widen8(Program& p, Value x) { return p.Cast(p.Cast(x, "fp16", "NONE"), "int16", "RINT"); }

Value Narrow8(Program& p, Value x, const std::string& dtype, bool fits) {
  if (!fits && dtype == "int8") x = p.Shr(p.Shl(x, 8), 8);
  if (!fits && dtype != "int8") {
    Value high = p.Shl(p.View(x, "uint16"), 8);
    x = p.View(p.Shr(high, 8), "int16");
  }
  return p.Cast(p.Cast(x, "fp16", "RINT"), dtype == "int8" ? "int8" : "uint8", "RINT");
}

}  // namespace uir::codegen::ascend
