// SPDX-License-Identifier: Apache-2.0
// Functions of the host that launch a function's kernels, in what a vendor's compiler made.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "runtime/binaries.h"
#include "runtime/kernel_spec.h"

namespace uir::runtime {

/*! \brief What a launch takes, in the order of its kernel's parameters: addresses, and sizes as they are. */
std::vector<void*> AsPointers(const LaunchSpec& launch, const CallArguments& call);

//! \brief The functions NAME_launch of a shared object that holds the device's code beside them.
//!
//! Loading the object makes the kernels known to the vendor's runtime, on the calling thread's device.
class Launchers {
 public:
  /*! \brief Both must outlive this. */
  Launchers(const KernelSpec& spec, Binaries& binaries) : spec_(spec), binaries_(binaries) {}

  /*! \brief The launcher of every launch in order; loaded at the first call, for the architecture of the function.
   *  \throws DeviceError The object cannot be loaded, or has not a launcher. */
  const std::vector<void*>& Get();

  //! \brief Calls every launcher in order as NAME_launch(blocks, stream, arguments): addresses of tensors, then sizes.
  //! \param launched Called after each.
  void CallAll(
      const CallArguments& call, void* stream,
      const std::function<void(const LaunchSpec&)>& launched = [](const LaunchSpec&) {});

 private:
  const KernelSpec& spec_;
  Binaries& binaries_;
  std::mutex lock_;
  std::vector<void*> found_;
};

}  // namespace uir::runtime
