// SPDX-License-Identifier: Apache-2.0
// Kernels of a kind of hardware that has no row of its own, as functions of this machine's code.
//
// The target's compiler (`uir_tvm.device.kind`) makes a shared object that has a function NAME_launch for each kernel.
#include <tvm/ffi/reflection/registry.h>

#include "runtime/executor.h"
#include "runtime/launchers.h"

namespace uir::runtime {

namespace {

/*! \brief A launcher: groups, nothing, addresses of the arguments in the kernel's order. */
using Launcher = void (*)(uint32_t groups, void* stream, void* const* arguments);

class HostExecutor final : public Executor {
 public:
  HostExecutor(const KernelSpec& spec, Binaries& binaries) : spec_(spec), launchers_(spec, binaries) {}

  void Launch(int, const std::vector<void*>& pointers) final {
    const std::vector<void*>& launchers = launchers_.Get();
    std::vector<void*> arguments;
    for (size_t k = 0; k < spec_.launches.size(); ++k) {
      const LaunchSpec& launch = spec_.launches[k];
      arguments.clear();
      for (int position : launch.arguments) arguments.push_back(pointers[position]);
      reinterpret_cast<Launcher>(launchers[k])(static_cast<uint32_t>(launch.grid), nullptr, arguments.data());
    }
  }

 private:
  const KernelSpec& spec_;
  Launchers launchers_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<HostExecutor>("", "cpu"); }

}  // namespace uir::runtime
