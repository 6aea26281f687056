// SPDX-License-Identifier: Apache-2.0
/*!
 * \file literal.h
 * \brief Numbers of a graph as C++ literals of a tensor's type.
 */
#ifndef UIR_CODEGEN_ASCEND_LITERAL_H_
#define UIR_CODEGEN_ASCEND_LITERAL_H_

#include <tvm/ffi/any.h>

#include <string>

#include "scalar.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief A number (int, bool or float) rounded to a type, as an expression of that type.
 * \note Infinities and NaN are the compiler's builtins: the device has no header for them.
 */
std::string LiteralOf(const ScalarType& type, const tvm::ffi::Any& value);

/*! \brief Whether all bits of the number, rounded to the type, are zero. */
bool IsZeroBits(const ScalarType& type, const tvm::ffi::Any& value);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_LITERAL_H_
