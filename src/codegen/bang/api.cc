// SPDX-License-Identifier: Apache-2.0
/*!
 * \file api.cc
 * \brief The table of BANG C, found by name.
 */
#include "api.h"

#include <tvm/ffi/reflection/registry.h>

#include "api_table.h"

namespace uir {
namespace codegen {
namespace bang {
namespace {

/*! \brief Element types by dtype; a bool is a byte, 0 or 1. */
constexpr struct {
  const char* dtype;
  const char* type;
} kTypes[] = {
    {"fp32", "float"},    {"fp16", "half"},       {"bf16", "bfloat16_t"}, {"int8", "int8_t"},
    {"int16", "int16_t"}, {"int32", "int32_t"},   {"int64", "int64_t"},   {"uint8", "uint8_t"},
    {"bool", "uint8_t"},  {"uint16", "uint16_t"}, {"uint32", "uint32_t"}, {"uint64", "uint64_t"},
};

}  // namespace

const ApiTable& Table() {
  static const ApiTable table("BANG C", "docs/targets/bang-apis.md", ApiRows());
  return table;
}

std::string ElementType(const std::string& dtype) {
  for (const auto& row : kTypes) {
    if (dtype == row.dtype) return row.type;
  }
  return "";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace ffi = tvm::ffi;
  ffi::reflection::GlobalDef()
      .def("uir.codegen.bang.apis", [] { return Table().Data(); })
      .def("uir.codegen.bang.call", [](ffi::String name, ffi::String form, ffi::Array<ffi::String> types,
                                       ffi::Array<ffi::String> args, ffi::String arch) {
        return ffi::String(
            Table().Call("", name, form, {types.begin(), types.end()}, {args.begin(), args.end()}, arch));
      });
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
