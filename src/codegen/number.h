// SPDX-License-Identifier: Apache-2.0
// Numbers of a graph: rounded to a dtype, and spelled as C++ literals.
#pragma once

#include <cstdint>
#include <string>

namespace uir::codegen {

/*! \brief What kind of number a dtype holds. */
enum class Kind : char { kFloat = 'f', kInt = 'i', kUint = 'u', kBool = 'b' };

/*! \brief The value of a number once it is held as a float dtype ("fp16"), rounded to the nearest, halves to even. */
double RoundFloat(const std::string& dtype, double value);

/*! \brief The least value of an integer or bool type. */
int64_t LowestInt(Kind kind, int bytes);
/*! \brief The greatest value of an integer or bool type, as the bits of an unsigned number. */
uint64_t HighestInt(Kind kind, int bytes);

/*! \brief The shortest decimal literal that reads back as the value: "1.5f" where `single`, else "1.5". */
std::string Digits(double value, bool single);

/*! \brief The integer or bool whose low bits are given, as a literal of the type `stored`. */
std::string WholeLiteral(Kind kind, int bytes, const std::string& stored, uint64_t bits);

/*! \brief A number truncated and saturated to an integer or bool type (NaN is 0). */
double WholeValue(Kind kind, int bytes, double value);
/*! \brief The bits of a number saturated to an integer or bool type (NaN is 0). */
uint64_t WholeBits(Kind kind, int bytes, double value);

}  // namespace uir::codegen
