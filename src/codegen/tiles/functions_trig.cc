// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions of fp32 and their inverses.
//
// Polynomials were fitted to the functions at Chebyshev nodes, reweighted towards the least greatest error.
#include "codegen/tiles/functions.h"

namespace uir::codegen::tiles {
namespace {

constexpr double kPi = 3.14159265358979323846;
// pi in four floats, the first three of 12 bits: their multiples by numbers of 12 bits are exact
constexpr double kPiParts[] = {3.140625, 9.67502593994140625e-4, 1.5099067240953445e-7, 5.1266883080e-12};
//! \brief (-1)^k sin(x - (k + part) pi), |x - (k + part) pi| at most pi / 2: k is whole, part 0 or -1/2.
//! \param peak The largest exponent; id -1: |x| is below 2^22 or infinite.  From there on x / pi is not rounded to the
//! nearest whole number any more, and a device takes turns off by another way (`Program::FarRest`).
Value SinOfRest(Program& p, Value x, Value k, double part, Value peak) {
  // turns in two numbers of 12 bits
  Value high = p.Muls(p.Whole(p.Muls(k, 1.0 / 2048), "RINT"), 2048), low = p.Sub(k, high);
  if (part != 0) low = p.Adds(low, part);
  Value r = x;
  for (double pi : kPiParts) r = p.Sub(p.Sub(r, p.Muls(high, pi)), p.Muls(low, pi));
  // 1 - 2 (k mod 2); the sine is odd
  Value pairs = p.Muls(p.Whole(p.Muls(k, 0.5), "FLOOR"), 4);
  r = p.Mul(r, p.Adds(p.Sub(pairs, p.Muls(k, 2)), 1));
  if (peak.id >= 0) r = p.FarRest(part == 0 ? "sin" : "cos", x, r, peak);
  Value square = p.Mul(r, r);
  Value series = p.Polynomial(square, {-0.16666666606325994, 0.008333330490528921, -0.00019840803420551577,
                                       2.7522588695108596e-06, -2.3846179885746166e-08});
  return p.Add(r, p.Mul(p.Mul(r, square), series));
}

Value Sin(Program& p, Value x, Value peak) {
  Value k = p.Whole(p.Muls(x, 1 / kPi), "RINT");
  return SinOfRest(p, x, k, 0, peak);
}

// cos x = sin(x + pi / 2)
Value Cos(Program& p, Value x, Value peak) {
  Value k = p.Whole(p.Adds(p.Muls(x, 1 / kPi), 0.5), "RINT");
  return SinOfRest(p, x, k, -0.5, peak);
}

/*! \brief Whether a value was a half, none of which but infinity is as large as 2^22. */
bool IsHalf(const Program& p, Value x) {
  const Step& step = p.steps()[x.id];
  return step.form == Step::Form::kCast && p.steps()[step.args[0]].dtype == "fp16";
}

/*! \brief asin of [0, 1/sqrt(2)]. */
Value AsinCore(Program& p, Value z) {
  Value square = p.Mul(z, z);
  Value high = p.Polynomial(square, {0.16666821913350718, 0.07493063378419028, 0.04570942650842828,
                                     0.023134396924755815, 0.04377631528569746});
  return p.Add(z, p.Mul(p.Mul(z, square), high));
}

/*! \brief atan of [0, 1]: beyond tan(pi / 8) by the angle to pi / 4. */
Value AtanCore(Program& p, Value z) {
  Value large = p.Compare("GT", z, 0.41421356);
  Value turned = p.Div(p.Adds(z, -1), p.Adds(z, 1));
  Value v = p.Select(large, turned, z), square = p.Mul(v, v);
  Value high = p.Polynomial(square, {-0.33333302866997905, 0.19997889290211002, -0.14234401928359808,
                                     0.10535362478290754, -0.059464948681428355});
  Value angle = p.Add(v, p.Mul(p.Mul(v, square), high));
  return p.Add(angle, p.Select(large, p.Fill(kPi / 4), 0.0));
}

/*! \brief c - x. */
Value From(Program& p, double c, Value x) { return p.Adds(p.Muls(x, -1), c); }

}  // namespace

Value CopySign(Program& p, Value magnitude, Value sign) {
  Value mask = p.Fill("int32", ElementIntLiteral(INT32_MIN, "int32_t"));
  Value bit = p.Bits("And", p.View(sign, "int32"), mask);
  return p.View(p.Bits("Or", p.View(magnitude, "int32"), bit), "fp32");
}

Value Trigonometric(Program& p, const std::string& name, Value x) {
  Value peak = IsHalf(p, x) ? Value{} : p.Peak(x);
  if (name == "sin") return Sin(p, x, peak);
  if (name == "cos") return Cos(p, x, peak);
  Value sine = Sin(p, x, peak);
  return p.Div(sine, Cos(p, x, peak));
}

Value Inverse(Program& p, const std::string& name, Value x) {
  Value a = p.Apply("Abs", x);
  if (name == "atan") {
    Value beyond = p.Compare("GT", a, 1.0);
    Value z = p.Select(beyond, p.Div(p.Fill(1), a), a);
    Value angle = AtanCore(p, z);
    return CopySign(p, p.Select(beyond, From(p, kPi / 2, angle), angle), x);
  }
  // beyond 1/2 by the half angle
  Value large = p.Compare("GT", a, 0.5);
  Value half = p.Apply("Sqrt", p.Adds(p.Muls(a, -0.5), 0.5));
  Value s = AsinCore(p, p.Select(large, half, a));
  Value twice = p.Muls(s, 2);
  if (name == "asin") return CopySign(p, p.Select(large, From(p, kPi / 2, twice), s), x);
  Value far = p.Select(p.Compare("LT", x, 0.0), From(p, kPi, twice), twice);
  return p.Select(large, far, From(p, kPi / 2, CopySign(p, s, x)));
}

Value Atan2(Program& p, Value y, Value x) {
  Value ay = p.Apply("Abs", y), ax = p.Apply("Abs", x);
  Value most = p.Max(ax, ay), least = p.Min(ax, ay);
  Value z = p.Div(least, most);
  // both alike, infinite ones too; both zero
  z = p.Select(p.Compare("EQ", least, most), p.Fill(1), z);
  z = p.Select(p.Compare("EQ", most, 0.0), p.Fill(0.0), z);
  Value angle = AtanCore(p, z);
  angle = p.Select(p.Compare("GT", ay, ax), From(p, kPi / 2, angle), angle);
  // by the sign bit, which -0 has too
  Value left = p.Compare("LT", CopySign(p, p.Fill(1), x), 0.0);
  angle = p.Select(left, From(p, kPi, angle), angle);
  return CopySign(p, angle, y);
}

}  // namespace uir::codegen::tiles
