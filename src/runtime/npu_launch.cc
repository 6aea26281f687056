// SPDX-License-Identifier: Apache-2.0
// Kernels of Ascend C on an NPU.
//
// The vendor's compiler makes a shared object that holds the device's code beside a function of the host for each
// kernel, NAME_launch (`uir_tvm.target.ascend.launchers`), which launches it.
#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/reflection/registry.h>

#include "runtime/acl_api.h"
#include "runtime/executor.h"
#include "runtime/launchers.h"

namespace uir::runtime {

namespace {

class NpuExecutor final : public Executor {
 public:
  NpuExecutor(const KernelSpec& spec, Binaries& binaries) : launchers_(spec, binaries) {}

  void Launch(int device, const CallArguments& call) final {
    const acl::Api& api = acl::Require();
    acl::UseDevice(device);
    launchers_.CallAll(call, TVMFFIEnvGetStream(kDLExtDev, device), [&api](const LaunchSpec& launch) {
      if (api.GetLastError) acl::Check(api.GetLastError(acl::kThreadLevel), "A launch", launch.name);
    });
  }

 private:
  Launchers launchers_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<NpuExecutor>("ascend", "npu"); }

}  // namespace uir::runtime
