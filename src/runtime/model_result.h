// SPDX-License-Identifier: Apache-2.0
// What the host models answer to a launch, and what they are asked with.
#pragma once

#include <tvm/ffi/extra/json.h>

#include <string>
#include <vector>

#include "runtime/kernel_spec.h"

namespace uir::runtime {

//! \brief The answer of a host model to one launch.
//! \param status What its launch function returned: 0 without, 1 with findings, 2 where it could not run.
//! \param text The answer as JSON.
//! \param source The kernel's source, to quote the line of a finding.
//! \throws DeviceModelError The model found a fault; DeviceError: it could not run.
ffi::json::Object ModelResult(int status, const LaunchSpec& launch, const std::string& text, const std::string& source);

/*! \brief Between launches: a model takes minutes for what a device does in one, and Ctrl-C ends that.
 *  \throws What the program around us raised meanwhile, such as KeyboardInterrupt of Python. */
void CheckInterrupted();

/*! \brief The arguments of a launch as structures (`value`, `bytes`, `name`) of a host model's interface; of a number
 * the bytes are -1. */
template <typename Arg>
std::vector<Arg> ModelArguments(const KernelSpec& spec, const LaunchSpec& launch, const CallArguments& call) {
  std::vector<Arg> arguments;
  for (int position : launch.arguments) {
    size_t k = static_cast<size_t>(position), count = spec.params.size();
    const std::string& name = k < count ? spec.params[k].name : spec.workspace[k - count].name;
    // at an empty tensor there is nothing to access: its address is no more than a number
    arguments.push_back({call.pointers[k], call.bytes[k] == 0 ? -1 : call.bytes[k], name.c_str()});
  }
  for (size_t k = 0; k < call.sizes.size(); ++k) {
    arguments.push_back({reinterpret_cast<void*>(call.sizes[k]), -1, spec.sizes[k]->name.c_str()});
  }
  return arguments;
}

}  // namespace uir::runtime
