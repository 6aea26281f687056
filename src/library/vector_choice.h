// SPDX-License-Identifier: Apache-2.0
// The packed functions by which tests choose which of several widths of vectors code of the library runs with.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>
#include <vector>

namespace uir::library {

//! `uir.library.cpu.<what>_vectors`, the names of what this CPU runs, and `uir.library.cpu.set_<what>_vectors`, which
//! takes one of them; `set` is false of others.
inline void DefineVectorChoice(const std::string& what, std::vector<std::string> (*names)(),
                               bool (*set)(const std::string&)) {
  const auto all = [names] {
    tvm::ffi::Array<tvm::ffi::String> found;
    for (const std::string& name : names()) found.push_back(name);
    return found;
  };
  const auto choose = [what, names, set](const tvm::ffi::String& name) {
    if (set(name)) return;
    std::string known;
    for (const std::string& each : names()) known += (known.empty() ? "" : ", ") + each;
    TVM_FFI_THROW(ValueError) << "This CPU runs no code for " << what << " called \"" << std::string(name) << "\".\n"
                              << "  need:   one of: " << (known.empty() ? "none here" : known) << "\n"
                              << "  remedy: ask uir.library.cpu." << what << "_vectors";
  };
  tvm::ffi::reflection::GlobalDef()
      .def(("uir.library.cpu." + what + "_vectors").c_str(), all)
      .def(("uir.library.cpu.set_" + what + "_vectors").c_str(), choose);
}

}  // namespace uir::library
