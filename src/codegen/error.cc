// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <tvm/ffi/error.h>

namespace uir {
namespace codegen {

void CodegenError(const std::string& what, const std::string& where, const std::string& need, const std::string& limit,
                  const std::string& remedy) {
  const char* unit = "\x1f";
  TVM_FFI_THROW(CodegenError) << what << unit << where << unit << need << unit << limit << unit << remedy;
}

}  // namespace codegen
}  // namespace uir
