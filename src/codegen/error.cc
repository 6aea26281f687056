// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <tvm/ffi/error.h>

namespace uir {
namespace codegen {

namespace {

const char* kUnit = "\x1f";

}  // namespace

void CodegenError(const std::string& what, const std::string& where, const std::string& need, const std::string& limit,
                  const std::string& remedy) {
  TVM_FFI_THROW(CodegenError) << what << kUnit << where << kUnit << need << kUnit << limit << kUnit << remedy;
}

void CapacityError(const std::string& what, const std::string& where, const std::string& need, const std::string& limit,
                   const std::string& remedy) {
  TVM_FFI_THROW(CodegenCapacityError) << what << kUnit << where << kUnit << need << kUnit << limit << kUnit << remedy;
}

}  // namespace codegen
}  // namespace uir
