// SPDX-License-Identifier: Apache-2.0
// Functions of int64: of two int32 words each, since vector functions know no longer integers.
//
// Words are gathered out of the operands and woven together again; in between carries, borrows and signs go from word
// to word.  All of it is exact, and wraps.
#include "codegen/ascend/api.h"
#include "codegen/ascend/functions.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief An int64 as words; the low one counts as unsigned. */
struct Wide {
  Value low, high;
};

Value Word(Program& p, int64_t word) {
  return p.Fill("int32", IntLiteral(static_cast<int32_t>(static_cast<uint32_t>(word)), "int32_t"));
}

Wide WideOf(Program& p, int64_t number) { return {Word(p, number), Word(p, number >> 32)}; }

/*! \brief An int32 with its sign. */
Wide SignExtended(Program& p, Value x) { return {x, p.Shr(x, 31)}; }

Wide Unwoven(Program& p, Value x) { return {LowWord(p, x), HighWord(p, x)}; }

/*! \brief Bytes of words 0, 0, 1, 1, 2, 2, ...: each twice. */
Value Doubled(Program& p, Value words) {
  return p.Gather(words, p.View(p.ScalarInt("Muls", p.Shr(p.Index(2), 1), 4), "uint32"), 0);
}

Value Woven(Program& p, const Wide& x) {
  // even places take the low word, which a cast puts there
  Value low = p.View(p.Cast(x.low, "int64", "NONE"), "int32"), index = p.Index(2);
  Value odd = p.Sub(index, p.ScalarInt("Muls", p.Shr(index, 1), 2));
  Value even = p.Compare("EQ", odd, p.Fill("int32", "0", 2));
  return p.View(p.Select(even, low, Doubled(p, x.high)), "int64");
}

Value LogicalShr(Program& p, Value x, int bits) { return p.View(p.Shr(p.View(x, "uint32"), bits), "int32"); }
Value And(Program& p, Value x, Value y) { return p.Bits("And", x, y); }
Value Or(Program& p, Value x, Value y) { return p.Bits("Or", x, y); }
Value Xor(Program& p, Value x, Value y) { return And(p, Or(p, x, y), p.BitNot(And(p, x, y))); }

/*! \brief -1 where a word is not zero, else 0. */
Value SomeMask(Program& p, Value x) { return p.Shr(Or(p, x, Negative(p, x)), 31); }

Wide Sum(Program& p, const Wide& x, const Wide& y) {
  Value low = p.Add(x.low, y.low);
  // both top bits, or one of them that the sum has lost
  Value carries = Or(p, And(p, x.low, y.low), And(p, Or(p, x.low, y.low), p.BitNot(low)));
  return {low, p.Add(p.Add(x.high, y.high), LogicalShr(p, carries, 31))};
}

Wide Difference(Program& p, const Wide& x, const Wide& y) {
  Value low = p.Sub(x.low, y.low), without = p.BitNot(x.low);
  Value borrows = Or(p, And(p, without, y.low), And(p, Or(p, without, y.low), low));
  return {low, p.Sub(p.Sub(x.high, y.high), LogicalShr(p, borrows, 31))};
}

Wide ProductOf(Program& p, const Wide& x, const Wide& y) {
  // the low words by their halves: no sum of partial products needs more than 32 bits
  auto half = [&p](Value word) { return LogicalShr(p, p.Shl(word, 16), 16); };
  auto upper = [&p](Value word) { return LogicalShr(p, word, 16); };
  Value x0 = half(x.low), x1 = upper(x.low), y0 = half(y.low), y1 = upper(y.low);
  Value first = p.Add(p.Mul(x0, y1), upper(p.Mul(x0, y0)));
  Value second = p.Add(p.Mul(x1, y0), half(first));
  Value high = p.Add(p.Add(p.Mul(x1, y1), upper(first)), upper(second));
  high = p.Add(high, p.Add(p.Mul(x.low, y.high), p.Mul(x.high, y.low)));
  return {p.Mul(x.low, y.low), high};
}

/*! \brief -1 where x < y, else 0. */
Value LessMask(Program& p, const Wide& x, const Wide& y) {
  // where the signs differ x has it, else the difference does, which then has not overflowed
  Value differ = Xor(p, x.high, y.high);
  Value sign = Or(p, And(p, differ, x.high), And(p, p.BitNot(differ), Difference(p, x, y).high));
  return p.Shr(sign, 31);
}

/*! \brief x where the mask is -1, y where it is 0. */
Value ByMask(Program& p, Value mask, Value x, Value y) { return Or(p, And(p, x, mask), And(p, y, p.BitNot(mask))); }
Wide ByMask(Program& p, Value mask, const Wide& x, const Wide& y) {
  return {ByMask(p, mask, x.low, y.low), ByMask(p, mask, x.high, y.high)};
}

Wide NegativeWide(Program& p, const Wide& x) { return Difference(p, WideOf(p, 0), x); }

/*! \brief x * 2^n or x / 2^n rounded down: a step for every bit of n. */
Wide ShiftWide(Program& p, Wide x, const Wide& n, bool left) {
  Value sign = p.Shr(x.high, 31), zero = Word(p, 0);
  auto step = [&](int bits) -> Wide {
    if (bits == 32) return left ? Wide{zero, x.low} : Wide{x.high, sign};
    if (left) return {p.Shl(x.low, bits), Or(p, p.Shl(x.high, bits), LogicalShr(p, x.low, 32 - bits))};
    return {Or(p, LogicalShr(p, x.low, bits), p.Shl(x.high, 32 - bits)), p.Shr(x.high, bits)};
  };
  for (int k = 0; k < 6; ++k) x = ByMask(p, p.Shr(p.Shl(n.low, 31 - k), 31), step(1 << k), x);
  // by 64 or more, or a negative number: everything is shifted out
  Value beyond = SomeMask(p, Or(p, p.Shr(n.low, 6), n.high)), rest = left ? zero : sign;
  return ByMask(p, beyond, {rest, rest}, x);
}

/*! \brief -1 where x is the number, else 0. */
Value IsMask(Program& p, const Wide& x, int64_t number) {
  Wide apart = Difference(p, x, WideOf(p, number));
  return p.BitNot(SomeMask(p, Or(p, apart.low, apart.high)));
}

Wide Power(Program& p, const Wide& x, int64_t n) {
  if (n == 0) return WideOf(p, 1);
  if (n < 0) {
    // 1 stays, -1 has a sign, all else is truncated to 0
    Value one = IsMask(p, x, 1), minus = IsMask(p, x, -1);
    return SignExtended(p, n % 2 == 0 ? Negative(p, p.Add(one, minus)) : p.Sub(minus, one));
  }
  Wide square = x, product = x;
  bool some = false;
  for (int64_t left = n; left > 0; left >>= 1) {
    if (left & 1) product = some ? ProductOf(p, product, square) : square;
    some = some || (left & 1) != 0;
    if (left > 1) square = ProductOf(p, square, square);
  }
  return product;
}

}  // namespace

Value LowWord(Program& p, Value x) {
  Value offsets = p.View(p.ScalarInt("Muls", p.Index(1), 8), "uint32");
  return p.Gather(p.View(x, "int32"), offsets, 0);
}

Value HighWord(Program& p, Value x) {
  Value offsets = p.View(p.ScalarInt("Muls", p.Index(1), 8), "uint32");
  return p.Gather(p.View(x, "int32"), offsets, 4);
}

Value WideConstant(Program& p, int64_t number) {
  if (number == static_cast<int32_t>(number)) return p.Cast(Word(p, number), "int64", "NONE");
  return Woven(p, WideOf(p, number));
}

Value WideUnary(Program& p, const std::string& name, Value x, int64_t c) {
  if (name == "not") return p.BitNot(x);
  if (name == "subs") return WideBinary(p, "sub", x, WideConstant(p, c));
  if (name == "ands" || name == "shls" || name == "shrs")
    return WideBinary(p, name.substr(0, name.size() - 1), x, WideConstant(p, c));
  Wide wide = Unwoven(p, x);
  Value sign = p.Shr(wide.high, 31);
  if (name == "adds") return Woven(p, Sum(p, wide, WideOf(p, c)));
  if (name == "muls") return Woven(p, ProductOf(p, wide, WideOf(p, c)));
  if (name == "rsubs") return Woven(p, Difference(p, WideOf(p, c), wide));
  if (name == "maxs") return Woven(p, ByMask(p, LessMask(p, wide, WideOf(p, c)), WideOf(p, c), wide));
  if (name == "mins") return Woven(p, ByMask(p, LessMask(p, wide, WideOf(p, c)), wide, WideOf(p, c)));
  if (name == "abs") return Woven(p, ByMask(p, sign, NegativeWide(p, wide), wide));
  if (name == "neg") return Woven(p, NegativeWide(p, wide));
  if (name == "relu") return Woven(p, ByMask(p, sign, WideOf(p, 0), wide));
  if (name == "sign") {
    Value some = Negative(p, SomeMask(p, Or(p, wide.low, wide.high)));
    return p.Cast(Or(p, some, sign), "int64", "NONE");
  }
  if (name == "pows") return Woven(p, Power(p, wide, c));
  return {-1};
}

Value WideBinary(Program& p, const std::string& name, Value x, Value y) {
  if (name == "and") return And(p, x, y);
  if (name == "or") return Or(p, x, y);
  if (name == "xor") return Xor(p, x, y);
  Wide a = Unwoven(p, x), b = Unwoven(p, y);
  if (name == "add") return Woven(p, Sum(p, a, b));
  if (name == "sub") return Woven(p, Difference(p, a, b));
  if (name == "mul") return Woven(p, ProductOf(p, a, b));
  if (name == "max") return Woven(p, ByMask(p, LessMask(p, a, b), b, a));
  if (name == "min") return Woven(p, ByMask(p, LessMask(p, a, b), a, b));
  if (name == "shl" || name == "shr") return Woven(p, ShiftWide(p, a, b, name == "shl"));
  return {-1};
}

Value WideCompare(Program& p, const std::string& name, Value x, Value y, bool* inverted) {
  Wide a = Unwoven(p, x), b = Unwoven(p, y);
  Value zero = Word(p, 0);
  *inverted = name == "ne" || name == "lt" || name == "gt";
  if (name == "eq" || name == "ne") {
    return p.Compare("EQ", Or(p, p.Sub(a.low, b.low), p.Sub(a.high, b.high)), zero);
  }
  // a >= b where a is not less
  bool turned = name == "gt" || name == "le";
  return p.Compare("EQ", turned ? LessMask(p, b, a) : LessMask(p, a, b), zero);
}

}  // namespace uir::codegen::ascend
