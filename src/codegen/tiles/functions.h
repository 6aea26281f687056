// SPDX-License-Identifier: Apache-2.0
// The scalar functions of floats as sequences of vector functions, computed in fp32.
//
// What a device has no function for is composed of what it has: accuracy is stated at each, where the device's own
// functions are within 1 ULP.
#pragma once

#include <limits>
#include <string>

#include "codegen/tiles/program.h"

namespace uir::codegen::tiles {

/*! \brief Whether a function of floats is known: name of a unary or binary iOp. */
bool HasFloatUnary(const std::string& name);
bool HasFloatBinary(const std::string& name);

/*! \brief Whether a function of floats is exact to a rounding in half, so that halves need not be widened for it. */
bool RoundsOnceInHalf(const std::string& name);

/*! \brief A unary function of fp32; predicates (isnan, ...) give bits.  `param`: of adds, pows, leaky_relu, ... */
Value FloatUnary(Program& p, const std::string& name, Value x, double param);
/*! \brief A binary function of fp32. */
Value FloatBinary(Program& p, const std::string& name, Value x, Value y);

// of several files
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/*! \brief ln(1 + x), relative error about 3 ULP. */
Value Log1p(Program& p, Value x);
/*! \brief x^y as numpy.power; error about 2 ULP, the logarithm being held in two floats. */
Value Power(Program& p, Value x, Value y);
/*! \brief sin, cos, tan: relative error about 2e-7 for every finite x, by `Program::FarRest` from 2^22 on. */
Value Trigonometric(Program& p, const std::string& name, Value x);
/*! \brief asin, acos, atan. */
Value Inverse(Program& p, const std::string& name, Value x);
Value Atan2(Program& p, Value y, Value x);
/*! \brief tanh by a polynomial where |x| is small, else what is given: 1 - 2 / (1 + e^2x) cancels near 0. */
Value TanhNearZero(Program& p, Value x, Value far);
/*! \brief The error function; relative error about 4e-7, exactly 1 or -1 where the nearest float is (but near 3.9). */
Value Erf(Program& p, Value x);
/*! \brief floordiv, mod, truncdiv, truncmod of floats; remainders are exact for quotients up to 2^22, else NaN. */
Value FloatDivision(Program& p, const std::string& name, Value x, Value y);
//! \brief Scales a, which is not negative, and b by one power of two to where halves of a's factors neither overflow
//! nor underflow.
//! \return What a remainder is multiplied by again.
Value ScaleToMiddle(Program& p, Value* a, Value* b);
/*! \brief |x| with the sign of y. */
Value CopySign(Program& p, Value magnitude, Value sign);
/*! \brief The exact product as a sum of two floats. */
struct Two {
  Value high, low;
};
Two ExactProduct(Program& p, Value x, Value y);

}  // namespace uir::codegen::tiles
