// SPDX-License-Identifier: Apache-2.0
/*!
 * \file scalar.h
 * \brief The element types as Ascend C stores them.
 */
#ifndef UIR_CODEGEN_ASCEND_SCALAR_H_
#define UIR_CODEGEN_ASCEND_SCALAR_H_

#include <cstdint>
#include <string>

#include "../stored.h"

namespace uir {
namespace codegen {
namespace ascend {

/*! \brief The row of a dtype name; a CodegenError for one that the vector core cannot hold (`where`: for the error). */
const ScalarType& TypeOf(const std::string& dtype, const std::string& where = "");

/*! \brief Bytes of an element. */
int64_t BytesOf(const std::string& dtype);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_SCALAR_H_
