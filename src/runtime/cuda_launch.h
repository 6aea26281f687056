// SPDX-License-Identifier: Apache-2.0
// Runs the launches of a kernel on a GPU.
#pragma once

#include <tvm/ffi/string.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"
#include "runtime/executor.h"

namespace uir::runtime::cuda {

/*! \brief What a GPU is: "sm_80" and so on, without a suffix. */
std::string ArchOf(int device);

/*! \brief Whether code for an architecture runs on a device of another: the same major version, no newer minor, and
 *  exactly the same where it has the suffix of an architecture's own features (CUDA C++ Programming Guide, "Binary
 *  Compatibility"; "Architecture-Specific Features"). */
bool Runs(const std::string& arch, const std::string& device_arch);

//! \brief One function, loaded on the devices that it has run on; launches go to TVM's current stream there.
//!
//! The calling thread's context is as before after a call; modules are unloaded when this goes.
class LoadedKernel final : public Executor {
 public:
  LoadedKernel(const KernelSpec& spec, Binaries& binaries) : spec_(spec), binaries_(binaries) {}
  ~LoadedKernel() final;

  void* Enter() final;
  void Leave(void* before) final;
  void Launch(int device, const CallArguments& call) final;

 private:
  struct OnDevice {
    Context context = nullptr;
    Module module = nullptr;
    std::vector<Function> functions;
  };
  const OnDevice& Loaded(int device);
  OnDevice Load(int device);
  /*! \brief The cubin that runs on a GPU of this architecture.
   *  \throws DeviceError The source is for another one, or there is nothing to compile it with. */
  ffi::Bytes BinaryFor(const std::string& device_arch);

  const KernelSpec& spec_;
  Binaries& binaries_;
  std::mutex lock_;
  std::map<int, OnDevice> devices_;
};

}  // namespace uir::runtime::cuda
