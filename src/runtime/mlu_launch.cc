// SPDX-License-Identifier: Apache-2.0
// Kernels of BANG C on an MLU.
//
// The vendor's compiler makes a shared object that holds the device's code beside the launchers of the printed text:
// for each kernel a function NAME_launch(queue, addresses..., sizes...) of the host, which counts its own blocks.
#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/reflection/registry.h>

#include <array>
#include <string>
#include <utility>

#include "runtime/cnrt_api.h"
#include "runtime/error.h"
#include "runtime/executor.h"
#include "runtime/launchers.h"

namespace uir::runtime {

namespace {

/*! \brief Most tensors and sizes of a kernel. */
constexpr size_t kMostArguments = 64;

template <size_t>
using Pointer = void*;

/*! \brief Calls a launcher with as many addresses as it takes. */
template <size_t... kIndex>
void Call(void* launcher, void* queue, void* const* arguments, std::index_sequence<kIndex...>) {
  reinterpret_cast<void (*)(void*, Pointer<kIndex>...)>(launcher)(queue, arguments[kIndex]...);
}

using Caller = void (*)(void* launcher, void* queue, void* const* arguments);

template <size_t kCount>
void CallWith(void* launcher, void* queue, void* const* arguments) {
  Call(launcher, queue, arguments, std::make_index_sequence<kCount>());
}

template <size_t... kCount>
constexpr std::array<Caller, sizeof...(kCount)> Callers(std::index_sequence<kCount...>) {
  return {&CallWith<kCount>...};
}

/*! \brief By number of addresses. */
constexpr auto kCallers = Callers(std::make_index_sequence<kMostArguments + 1>());

class MluExecutor final : public Executor {
 public:
  MluExecutor(const KernelSpec& spec, Binaries& binaries) : spec_(spec), launchers_(spec, binaries) {}

  void Launch(int device, const CallArguments& call) final {
    const cnrt::Api& api = cnrt::Require();
    cnrt::UseDevice(device);
    const std::vector<void*>& launchers = launchers_.Get();
    void* queue = TVMFFIEnvGetStream(kDLExtDev, device);
    for (size_t k = 0; k < spec_.launches.size(); ++k) {
      const LaunchSpec& launch = spec_.launches[k];
      if (call.blocks[k] == 0) continue;
      const std::vector<void*> arguments = AsPointers(launch, call);
      CheckCount(launch, arguments.size());
      if (api.GetLastError) api.GetLastError();  // what is left of earlier calls
      kCallers[arguments.size()](launchers[k], queue, arguments.data());
      if (api.PeekAtLastError) cnrt::Check(api.PeekAtLastError(), "A launch", launch.name);
    }
  }

 private:
  static void CheckCount(const LaunchSpec& launch, size_t count) {
    if (count <= kMostArguments) return;
    DeviceError({"A kernel takes too many tensors.", launch.name, std::to_string(count), std::to_string(kMostArguments),
                 "split the function"});
  }

  const KernelSpec& spec_;
  Launchers launchers_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<MluExecutor>("bang", "mlu"); }

}  // namespace uir::runtime
