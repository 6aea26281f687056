// SPDX-License-Identifier: Apache-2.0
// The global function uir.runtime.put_constants: other tensors in the place of constants of an executable of TVM's
// virtual machine.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>
#include <tvm/runtime/base.h>
#include <tvm/runtime/vm/executable.h>

#include <optional>
#include <string>
#include <unordered_map>

namespace uir::runtime {
namespace ffi = tvm::ffi;
namespace {

using tvm::runtime::vm::VMExecutable;

/*! (executable, tensors, the tensors that take their places) -> how many constants were one of the former; they are
 *  known by the object, whatever it contains. */
int64_t PutConstants(const ffi::Module& module, const ffi::Array<ffi::Tensor>& held,
                     const ffi::Array<ffi::Tensor>& meant) {
  if (std::string(module->kind()) != "relax.VMExecutable") {
    TVM_FFI_THROW(ValueError) << "uir.runtime.put_constants got a module of kind " << std::string(module->kind())
                              << ".\n  need:   relax.VMExecutable";
  }
  if (held.size() != meant.size()) {
    TVM_FFI_THROW(ValueError) << "uir.runtime.put_constants got " << held.size() << " tensors and " << meant.size()
                              << " for their places.\n  need:   as many";
  }
  std::unordered_map<const DLTensor*, size_t> places;
  for (size_t i = 0; i < held.size(); ++i) places.emplace(held[i].GetDLTensorPtr(), i);
  auto* code = const_cast<VMExecutable*>(static_cast<const VMExecutable*>(module.get()));
  int64_t count = 0;
  for (ffi::Any& constant : code->constants) {
    const std::optional<ffi::Tensor> tensor = constant.as<ffi::Tensor>();
    const auto found = tensor ? places.find(tensor->GetDLTensorPtr()) : places.end();
    if (found == places.end()) continue;
    constant = meant[found->second];
    ++count;
  }
  return count;
}

TVM_FFI_STATIC_INIT_BLOCK() { ffi::reflection::GlobalDef().def("uir.runtime.put_constants", &PutConstants); }

}  // namespace
}  // namespace uir::runtime
