// SPDX-License-Identifier: Apache-2.0
// The element types in CUDA C++: how each is stored, computed with, shuffled and written as a literal.
//
// Narrow floats (fp16, bf16, fp8) are computed in float and rounded after every iOp; small integers are reduced and
// shuffled in 32 bits, where they wrap to the same value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/number.h"

namespace uir::codegen::cuda {

/*! \brief One element type of the iGraph. */
struct ScalarType {
  /*! \brief "fp16". */
  const char* name;
  Kind kind;
  int bytes;
  /*! \brief The type in memory and registers: "__half". */
  const char* stored;
  /*! \brief The type that expressions compute in: "float". */
  const char* compute;
  /*! \brief The dtype that partial results are kept in and that shuffles move: 32 or 64 bits wide. */
  const char* carried;
  /*! \brief Stored to compute, `$x` standing for the value. */
  const char* widen;
  /*! \brief Compute to stored, rounding to the nearest. */
  const char* narrow;
  /*! \brief The header that declares the type; empty for a type of the language. */
  const char* header;
  /*! \brief Whether `widen` and `narrow` are device functions of ours, named in helpers.h. */
  bool by_helper = false;
};

/*! \brief The row of a dtype name; refuses a name that is no dtype. */
const ScalarType& TypeOf(const std::string& dtype);

/*! \brief Whether the stored type differs from the one computed in. */
bool IsNarrow(const ScalarType& type);

/*! \brief A stored value as one to compute with. */
std::string Widen(const ScalarType& type, const std::string& value);

/*! \brief A computed value as one to store, rounded to the nearest. */
std::string Narrow(const ScalarType& type, const std::string& value);

/*! \brief A number written in an iOp, rounded to `type` and spelled in its compute type. */
std::string ComputeLiteral(const ScalarType& type, double value);
std::string ComputeLiteral(const ScalarType& type, int64_t value);

/*! \brief A number written in an iOp, rounded to `type` and spelled as it is stored. */
std::string StoredLiteral(const ScalarType& type, double value);
std::string StoredLiteral(const ScalarType& type, int64_t value);

/*! \brief The least or the greatest value of an integer or bool type, spelled in the compute type of `as`. */
std::string LimitLiteral(const ScalarType& type, bool highest, const ScalarType& as);

/*! \brief The device functions (keys of helpers.h) that `Widen` and `Narrow` call. */
std::vector<std::string> ConversionHelpers(const ScalarType& type);

/*! \brief The value of a number once it is held as `type` (saturating where `type` is an integer). */
double RoundTo(const ScalarType& type, double value);

}  // namespace uir::codegen::cuda
