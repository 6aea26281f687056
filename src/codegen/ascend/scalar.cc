// SPDX-License-Identifier: Apache-2.0
/*!
 * \file scalar.cc
 * \brief The element types of a vector core.
 */
#include "scalar.h"

namespace uir {
namespace codegen {
namespace ascend {

const ScalarType& TypeOf(const std::string& dtype, const std::string& where) {
  return codegen::TypeOf(dtype, "The vector core", where);
}

int64_t BytesOf(const std::string& dtype) { return TypeOf(dtype).bytes; }

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
