// SPDX-License-Identifier: Apache-2.0
// The table of BANG C, found by name.
#include "codegen/bang/api.h"

#include <tvm/ffi/reflection/registry.h>

#include "codegen/bang/api_table.h"

namespace uir::codegen::bang {

std::string Wait(const std::string& name, const Platform& platform) {
  if (Table().Has(name, "plain", platform)) return Table().Call("", name, "plain", {}, {}, platform) + ";";
  return Table().Find("sync;", "statement").params;
}

const ApiTable& Table() {
  // by default for cncc 4, which is that of the vendor's public kernels
  static const ApiTable table("BANG C", "docs/targets/bang-apis.md", ApiRows(), {"cncc", "4"});
  return table;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace ffi = tvm::ffi;
  ffi::reflection::GlobalDef()
      .def("uir.codegen.bang.apis", [] { return Table().Data(); })
      .def("uir.codegen.bang.call", [](ffi::String name, ffi::String form, ffi::Array<ffi::String> types,
                                       ffi::Array<ffi::String> args, ffi::String arch, ffi::String cncc) {
        return ffi::String(
            Table().Call("", name, form, {types.begin(), types.end()}, {args.begin(), args.end()}, {arch, cncc}));
      });
}

}  // namespace uir::codegen::bang
