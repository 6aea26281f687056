// SPDX-License-Identifier: Apache-2.0
// Functions that the device does not take, run on the host: their tensors are copied there and back.
#ifndef PROJECT_HOST_H_
#define PROJECT_HOST_H_

#include <cstdint>
#include <vector>

#include "device.h"
#include "tvm_c.h"

namespace project {

/*! A tensor of such a function: where it lies on the device, its elements' type and its shape. */
struct HostTensor {
  void* address;
  DLDataType type;
  std::vector<int64_t> shape;
};

using HostFunction = int32_t (*)(void* self, void* args, int32_t count, void* result);

/*! Waits for queued work, runs the function on copies of the tensors, and copies all but the first `inputs` back. */
void RunOnHost(const Device& device, HostFunction function, const std::vector<HostTensor>& tensors, size_t inputs);

}  // namespace project

#endif  // PROJECT_HOST_H_
