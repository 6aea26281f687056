// SPDX-License-Identifier: Apache-2.0
// The element types of cores that compute by vendor functions, as their C++ dialects store them.
#pragma once

#include <string>

#include "codegen/number.h"

namespace uir::codegen {

/*! \brief One element type of the iGraph. */
struct ScalarType {
  /*! \brief "fp16". */
  const char* name;
  Kind kind;
  int bytes;
  /*! \brief The type of its elements in memory: "half".  A bool is a byte, 0 or 1. */
  const char* stored;
};

/*! \brief What vector units have functions of: floats, and integers of a byte, bool among them, or a word. */
inline bool IsFloat(const std::string& dtype) { return dtype == "fp32" || dtype == "fp16" || dtype == "bf16"; }
inline bool IsByte(const std::string& dtype) { return dtype == "int8" || dtype == "uint8" || dtype == "bool"; }
inline bool IsWord(const std::string& dtype) { return dtype == "int16" || dtype == "int32"; }

/*! \brief The row of a dtype name, or nullptr. */
const ScalarType* FindType(const std::string& dtype);

//! \brief The row of a dtype name; a CodegenError for one that a core cannot hold.
//! \param core How the error calls it: "A core of an MLU".
//! \param where For the error.
const ScalarType& TypeOf(const std::string& dtype, const std::string& core, const std::string& where);

}  // namespace uir::codegen
