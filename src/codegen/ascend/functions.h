// SPDX-License-Identifier: Apache-2.0
// The scalar functions of iOps as sequences of vector functions.
//
// Floats are computed in fp32 (tiles/functions.h), integers in int16 or int32 (`IntUnary`, `IntBinary`).
#pragma once

#include <string>

#include "codegen/ascend/vector.h"
#include "codegen/tiles/functions.h"

namespace uir::codegen::ascend {

using tiles::FloatBinary;
using tiles::FloatUnary;
using tiles::HasFloatBinary;
using tiles::HasFloatUnary;
using tiles::RoundsOnceInHalf;

/*! \brief An int16 or int32 times -1, wrapping. */
Value Negative(Program& p, Value x);
/*! \brief A unary function of int16 or int32, wrapping; id -1 where there is none. */
Value IntUnary(Program& p, const std::string& name, Value x, int64_t param);
/*! \brief A binary function of int16 or int32, wrapping; id -1 where there is none. */
Value IntBinary(Program& p, const std::string& name, Value x, Value y);

/*! \brief Bits of a comparison (eq ne lt le gt ge) of int32, which the vector core only compares for equality. */
Value IntCompare(Program& p, const std::string& name, Value x, Value y, bool* inverted);

// int64, exact and wrapping (functions_wide.cc)
/*! \brief The low, and the high 32 bits of an int64 as int32. */
Value LowWord(Program& p, Value x);
Value HighWord(Program& p, Value x);
/*! \brief The same int64 everywhere. */
Value WideConstant(Program& p, int64_t number);
/*! \brief A unary, a binary function of int64; id -1 where there is none. */
Value WideUnary(Program& p, const std::string& name, Value x, int64_t param);
Value WideBinary(Program& p, const std::string& name, Value x, Value y);
/*! \brief Bits of a comparison of int64. */
Value WideCompare(Program& p, const std::string& name, Value x, Value y, bool* inverted);

/*! \brief Bits as a bool: a byte that is 1 where the bit is (where it is not: `inverted`). */
Value BoolOf(Program& p, Value bits, bool inverted = false);
/*! \brief A bool as bits. */
Value BitsOf(Program& p, Value flag);

/*! \brief An 8-bit integer or bool as int16. */
Value Widen8(Program& p, Value x);
/*! \brief The low 8 bits of an int16 as int8 or uint8; `fits`: the value is in range already. */
Value Narrow8(Program& p, Value x, const std::string& dtype, bool fits);

/*! \brief A value of any dtype that the vector core knows as another one; refuses what it cannot (`where`). */
Value CastValue(Program& p, Value x, const std::string& to, const std::string& round, const std::string& where);
/*! \brief Floats as fp32. */
Value ToFloat(Program& p, Value x);

}  // namespace uir::codegen::ascend
