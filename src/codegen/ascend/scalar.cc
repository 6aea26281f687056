// SPDX-License-Identifier: Apache-2.0
// The element types of a vector core.
#include "codegen/ascend/scalar.h"

namespace uir::codegen::ascend {

const ScalarType& TypeOf(const std::string& dtype, const std::string& where) {
  return codegen::TypeOf(dtype, "The vector core", where);
}

int64_t BytesOf(const std::string& dtype) { return TypeOf(dtype).bytes; }

}  // namespace uir::codegen::ascend
