// SPDX-License-Identifier: Apache-2.0
// The packed functions uir.library.ascend.*: what aclnn computes on a device, the CPU's library on the host model of
// one.

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "library/arguments.h"
#include "library/host_model.h"

namespace uir::library::ascend {
namespace {

/*! The operator `op` on the host model; tensors of any other device are refused. */
void OnModel(const char* op, const char* function, const ffi::PackedArgs& args) {
  AttrsText(args, op);
  CheckTensor(args[args.size() - 1].cast<DLTensor*>(), op, "out", kDLExtDev);
  OnHostModel(function, args);
}

void Matmul(ffi::PackedArgs args, ffi::Any*) { OnModel("matmul", "uir.library.cpu.matmul", args); }

void Conv2d(ffi::PackedArgs args, ffi::Any*) { OnModel("conv2d", "uir.library.cpu.conv2d", args); }

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def_packed("uir.library.ascend.matmul", Matmul).def_packed("uir.library.ascend.conv2d", Conv2d);
}

}  // namespace
}  // namespace uir::library::ascend
