// SPDX-License-Identifier: Apache-2.0
/*!
 * \file stored.h
 * \brief The element types of cores that compute by vendor functions, as their C++ dialects store them.
 */
#ifndef UIR_CODEGEN_STORED_H_
#define UIR_CODEGEN_STORED_H_

#include <string>

#include "number.h"

namespace uir {
namespace codegen {

/*! \brief One element type of the iGraph. */
struct ScalarType {
  /*! \brief "fp16". */
  const char* name;
  Kind kind;
  int bytes;
  /*! \brief The type of its elements in memory: "half".  A bool is a byte, 0 or 1. */
  const char* stored;
};

/*! \brief The row of a dtype name, or nullptr. */
const ScalarType* FindType(const std::string& dtype);

/*!
 * \brief The row of a dtype name; a CodegenError for one that a core cannot hold.
 * \param core How the error calls it: "A core of an MLU".
 * \param where For the error.
 */
const ScalarType& TypeOf(const std::string& dtype, const std::string& core, const std::string& where);

}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_STORED_H_
