// SPDX-License-Identifier: Apache-2.0
#include "codegen/error.h"

#include <tvm/ffi/error.h>

namespace uir::codegen {

namespace {

const char* kUnit = "\x1f";

}  // namespace

void CodegenError(const std::string& what, const std::string& where, const std::string& need, const std::string& limit,
                  const std::string& remedy) {
  TVM_FFI_THROW(CodegenError) << what << kUnit << where << kUnit << need << kUnit << limit << kUnit << remedy;
}

void CapacityError(const std::string& what, const std::string& where, const Lack& lack, const std::string& need,
                   const std::string& limit, const std::string& remedy) {
  TVM_FFI_THROW(CodegenCapacityError) << what << kUnit << where << kUnit << need << kUnit << limit << kUnit << remedy
                                      << kUnit << lack.memory << kUnit << lack.needed << kUnit << lack.available;
}

}  // namespace uir::codegen
