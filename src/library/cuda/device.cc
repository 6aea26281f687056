// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/device.h"

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/runtime/device_api.h>

#include <map>
#include <mutex>
#include <utility>

namespace uir::library::cuda {

using tvm::runtime::DeviceAPI;

void UseDevice(DLDevice device) {
  if (DeviceAPI* api = DeviceAPI::Get(device, /*allow_missing=*/true)) api->SetDevice(device);
}

void* CurrentStream(DLDevice device) { return TVMFFIEnvGetStream(device.device_type, device.device_id); }

void* Workspace(DLDevice device, void* stream, size_t bytes) {
  if (bytes == 0) return nullptr;
  struct Buffer {
    void* data = nullptr;
    size_t bytes = 0;
  };
  static std::mutex mutex;
  // Never freed: the driver may be gone by the time that static objects are.
  static auto* buffers = new std::map<std::pair<int, void*>, Buffer>();
  std::lock_guard<std::mutex> lock(mutex);
  Buffer& buffer = (*buffers)[{device.device_id, stream}];
  if (buffer.bytes < bytes) {
    // The smaller one stays as well: a captured graph may name it.
    buffer.data = DeviceAPI::Get(device)->AllocDataSpace(device, bytes, 256, DLDataType{kDLUInt, 8, 1});
    buffer.bytes = bytes;
  }
  return buffer.data;
}

}  // namespace uir::library::cuda
