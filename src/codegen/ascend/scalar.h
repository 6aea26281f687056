// SPDX-License-Identifier: Apache-2.0
// The element types as Ascend C stores them.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/stored.h"

namespace uir::codegen::ascend {

/*! \brief The row of a dtype name; a CodegenError for one that the vector core cannot hold (`where`: for the error). */
const ScalarType& TypeOf(const std::string& dtype, const std::string& where = "");

/*! \brief Bytes of an element. */
int64_t BytesOf(const std::string& dtype);

}  // namespace uir::codegen::ascend
