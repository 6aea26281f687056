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

/*! \brief A launcher: blocks, stream, addresses of the arguments in the kernel's order. */
using Launcher = void (*)(uint32_t blocks, void* stream, void* const* arguments);

class NpuExecutor final : public Executor {
 public:
  NpuExecutor(const KernelSpec& spec, Binaries& binaries) : spec_(spec), launchers_(spec, binaries) {}

  void Launch(int device, const std::vector<void*>& pointers) final {
    const acl::Api& api = acl::Require();
    acl::UseDevice(device);
    const std::vector<void*>& launchers = launchers_.Get();
    void* stream = TVMFFIEnvGetStream(kDLExtDev, device);
    std::vector<void*> arguments;
    for (size_t k = 0; k < spec_.launches.size(); ++k) {
      const LaunchSpec& launch = spec_.launches[k];
      arguments.clear();
      for (int position : launch.arguments) arguments.push_back(pointers[position]);
      reinterpret_cast<Launcher>(launchers[k])(static_cast<uint32_t>(launch.grid), stream, arguments.data());
      if (api.GetLastError) acl::Check(api.GetLastError(acl::kThreadLevel), "A launch", launch.name);
    }
  }

 private:
  const KernelSpec& spec_;
  Launchers launchers_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<NpuExecutor>("ascend", "npu"); }

}  // namespace uir::runtime
