// SPDX-License-Identifier: Apache-2.0
/*!
 * \file scalar.h
 * \brief The element types as BANG C stores them.
 */
#ifndef UIR_CODEGEN_BANG_SCALAR_H_
#define UIR_CODEGEN_BANG_SCALAR_H_

#include <tvm/ffi/any.h>

#include <cstdint>
#include <string>

#include "../../igraph/nodes.h"
#include "../stored.h"

namespace uir {
namespace codegen {
namespace bang {

/*! \brief The row of a dtype name; a CodegenError for one that a core cannot hold (`where`: for the error). */
const ScalarType& TypeOf(const std::string& dtype, const std::string& where = "");

/*! \brief Bytes of an element. */
int64_t BytesOf(const std::string& dtype);

/*! \brief The 16 bits of a number of the graph held as bf16, as int16: BANG C has no literals of bfloat16_t. */
int64_t BfloatBits(const ffi::Any& value);

/*!
 * \brief A constant of the graph (int, bool or float) as a literal of a stored type: "1.5f", "(half)1.5f",
 * "(int16_t)3".  Floats are rounded to the dtype, integers wrap.
 */
std::string LiteralOf(const ScalarType& type, const ffi::Any& value);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_SCALAR_H_
