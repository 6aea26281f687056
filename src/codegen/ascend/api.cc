// SPDX-License-Identifier: Apache-2.0
// The table of Ascend C, found by name.
#include "codegen/ascend/api.h"

#include <tvm/ffi/reflection/registry.h>

#include "codegen/ascend/scalar.h"

namespace uir::codegen::ascend {

const ApiTable& Table() {
  // by default for CANN 8, whose names all later releases declare as well
  static const ApiTable table("Ascend C", "docs/targets/ascend-apis.md", ApiRows(), {"cann", "8"});
  return table;
}

std::string ElementType(const std::string& dtype) {
  const ScalarType* type = FindType(dtype);
  return type == nullptr ? "" : type->stored;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace ffi = tvm::ffi;
  ffi::reflection::GlobalDef()
      .def("uir.codegen.ascend.apis", [] { return Table().Data(); })
      .def("uir.codegen.ascend.call", [](ffi::String name, ffi::String form, ffi::Array<ffi::String> types,
                                         ffi::Array<ffi::String> args, ffi::String cann) {
        return ffi::String(
            Table().Call("", name, form, {types.begin(), types.end()}, {args.begin(), args.end()}, {"", cann}));
      });
}

}  // namespace uir::codegen::ascend
