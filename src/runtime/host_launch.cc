// SPDX-License-Identifier: Apache-2.0
// Kernels of a kind of hardware that has no row of its own, as functions of this machine's code.
//
// The target's compiler (`uir_tvm.device.kind`) makes a shared object that has a function NAME_launch for each kernel.
#include <tvm/ffi/reflection/registry.h>

#include "runtime/executor.h"
#include "runtime/launchers.h"

namespace uir::runtime {

namespace {

class HostExecutor final : public Executor {
 public:
  HostExecutor(const KernelSpec& spec, Binaries& binaries) : launchers_(spec, binaries) {}

  void Launch(int, const CallArguments& call) final { launchers_.CallAll(call, nullptr); }

 private:
  Launchers launchers_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<HostExecutor>("", "cpu"); }

}  // namespace uir::runtime
