// SPDX-License-Identifier: Apache-2.0
#include "runtime/launchers.h"

#include <dlfcn.h>

#include <string>

#include "runtime/error.h"

namespace uir::runtime {

const std::vector<void*>& Launchers::Get() {
  std::lock_guard<std::mutex> guard(lock_);
  if (!found_.empty()) return found_;
  const std::string& file = binaries_.FileOf(spec_.arch);
  // never closed: launches may still be on their way
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    DeviceError({"The code of a kernel cannot be loaded.", spec_.entry, "a shared object of the vendor's compiler",
                 dlerror(), "compile it again with the toolkit of this machine"});
  }
  std::vector<void*> found;
  for (const LaunchSpec& launch : spec_.launches) {
    std::string name = launch.name + "_launch";
    found.push_back(dlsym(library, name.c_str()));
    if (!found.back()) {
      DeviceError({"The code of a kernel has not its launcher.", spec_.entry, name, "",
                   "compile it again: it was made by another version"});
    }
  }
  found_ = std::move(found);
  return found_;
}

std::vector<void*> AsPointers(const LaunchSpec& launch, const CallArguments& call) {
  std::vector<void*> arguments;
  for (int position : launch.arguments) arguments.push_back(call.pointers[position]);
  for (int64_t size : call.sizes) arguments.push_back(reinterpret_cast<void*>(size));
  return arguments;
}

void Launchers::CallAll(const CallArguments& call, void* stream,
                        const std::function<void(const LaunchSpec&)>& launched) {
  using Launcher = void (*)(uint32_t blocks, void* stream, void* const* arguments);
  const std::vector<void*>& launchers = Get();
  for (size_t k = 0; k < spec_.launches.size(); ++k) {
    const LaunchSpec& launch = spec_.launches[k];
    if (call.blocks[k] == 0) continue;
    const std::vector<void*> arguments = AsPointers(launch, call);
    reinterpret_cast<Launcher>(launchers[k])(static_cast<uint32_t>(call.blocks[k]), stream, arguments.data());
    launched(launch);
  }
}

}  // namespace uir::runtime
