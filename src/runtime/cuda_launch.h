// SPDX-License-Identifier: Apache-2.0
/*!
 * \file cuda_launch.h
 * \brief Runs the launches of a kernel on a GPU.
 */
#ifndef UIR_RUNTIME_CUDA_LAUNCH_H_
#define UIR_RUNTIME_CUDA_LAUNCH_H_

#include <tvm/ffi/string.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"
#include "runtime/kernel_spec.h"

namespace uir::runtime::cuda {

/*! \brief What a GPU is: "sm_80" and so on, without a suffix. */
std::string ArchOf(int device);

/*! \brief Whether code for an architecture runs on a device of another: the same major version, no newer minor, and
 *  exactly the same where it has the suffix of an architecture's own features (CUDA C++ Programming Guide, "Binary
 *  Compatibility"; "Architecture-Specific Features"). */
bool Runs(const std::string& arch, const std::string& device_arch);

/*! \brief One binary, loaded on the devices that it has run on. */
class LoadedKernel {
 public:
  /*! \brief Gives the binary of an architecture that runs on a device of this one. */
  using Binary = std::function<ffi::Bytes(const std::string& device_arch)>;

  LoadedKernel(const KernelSpec& spec, Binary binary) : spec_(spec), binary_(std::move(binary)) {}

  /*! \brief Enqueues all launches on TVM's current stream of the device.
   *  \param pointers Device addresses of parameters, then workspaces. */
  void Launch(int device, const std::vector<void*>& pointers);

 private:
  struct OnDevice {
    Context context = nullptr;
    Module module = nullptr;
    std::vector<Function> functions;
  };
  const OnDevice& Loaded(int device);
  OnDevice Load(int device);

  const KernelSpec& spec_;
  Binary binary_;
  std::mutex lock_;
  std::map<int, OnDevice> devices_;
};

}  // namespace uir::runtime::cuda

#endif  // UIR_RUNTIME_CUDA_LAUNCH_H_
