// SPDX-License-Identifier: Apache-2.0
/*!
 * \file npu_launch.cc
 * \brief Kernels of Ascend C on an NPU.
 *
 * The vendor's compiler makes a shared object that holds the device's code beside a function of the host for each
 * kernel, NAME_launch (`uir_tvm.target.ascend.launchers`), which launches it.  Loading the object makes the
 * kernels known to the runtime, on the calling thread's device.
 */
#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <mutex>

#include "runtime/acl_api.h"
#include "runtime/error.h"
#include "runtime/executor.h"

namespace uir::runtime {

namespace {

/*! \brief A launcher: blocks, stream, addresses of the arguments in the kernel's order. */
using Launcher = void (*)(uint32_t blocks, void* stream, void* const* arguments);

class NpuExecutor final : public Executor {
 public:
  NpuExecutor(const KernelSpec& spec, Binaries& binaries) : spec_(spec), binaries_(binaries) {}

  void Launch(int device, const std::vector<void*>& pointers) final {
    const acl::Api& api = acl::Require();
    acl::UseDevice(device);
    Load();
    void* stream = TVMFFIEnvGetStream(kDLExtDev, device);
    std::vector<void*> arguments;
    for (size_t k = 0; k < spec_.launches.size(); ++k) {
      const LaunchSpec& launch = spec_.launches[k];
      arguments.clear();
      for (int position : launch.arguments) arguments.push_back(pointers[position]);
      launchers_[k](static_cast<uint32_t>(launch.grid), stream, arguments.data());
      if (api.GetLastError) acl::Check(api.GetLastError(acl::kThreadLevel), "A launch", launch.name);
    }
  }

 private:
  void Load() {
    std::lock_guard<std::mutex> guard(lock_);
    if (!launchers_.empty()) return;
    const std::string& file = binaries_.FileOf(spec_.arch);
    // never closed: launches may still be on their way
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      DeviceError({"The code of a kernel cannot be loaded.", spec_.entry, "a shared object of the vendor's compiler",
                   dlerror(), "compile it again with the toolkit of this machine"});
    }
    std::vector<Launcher> found;
    for (const LaunchSpec& launch : spec_.launches) {
      std::string name = launch.name + "_launch";
      found.push_back(reinterpret_cast<Launcher>(dlsym(library, name.c_str())));
      if (!found.back()) {
        DeviceError({"The code of a kernel has not its launcher.", spec_.entry, name, "",
                     "compile it again: it was made by another version"});
      }
    }
    launchers_ = std::move(found);
  }

  const KernelSpec& spec_;
  Binaries& binaries_;
  std::mutex lock_;
  std::vector<Launcher> launchers_;
};

}  // namespace

std::unique_ptr<Executor> MakeNpuExecutor(const KernelSpec& spec, Binaries& binaries) {
  return std::make_unique<NpuExecutor>(spec, binaries);
}

}  // namespace uir::runtime
