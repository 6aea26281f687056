// SPDX-License-Identifier: Apache-2.0
// The element types as BANG C stores them.
#pragma once

#include <tvm/ffi/any.h>

#include <cstdint>
#include <string>

#include "codegen/stored.h"
#include "igraph/nodes.h"

namespace uir::codegen::bang {

/*! \brief The row of a dtype name; a CodegenError for one that a core cannot hold (`where`: for the error). */
const ScalarType& TypeOf(const std::string& dtype, const std::string& where = "");

/*! \brief Bytes of an element. */
int64_t BytesOf(const std::string& dtype);

/*! \brief The 16 bits of a number of the graph held as bf16, as int16: BANG C has no literals of bfloat16_t. */
int64_t BfloatBits(const ffi::Any& value);

//! \brief A constant of the graph (int, bool or float) as a literal of a stored type: "1.5f", "(half)1.5f",
//! "(int16_t)3".  Floats are rounded to the dtype, integers wrap.
std::string LiteralOf(const ScalarType& type, const ffi::Any& value);

}  // namespace uir::codegen::bang
