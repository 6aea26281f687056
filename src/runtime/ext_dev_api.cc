// SPDX-License-Identifier: Apache-2.0
// TVM's device `ext_dev`: the memory that this process settled on (device_memory.h).
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include "runtime/device_memory.h"

namespace uir::runtime {

namespace ffi = tvm::ffi;

namespace {

class ExtDevAPI final : public tvm::runtime::DeviceAPI {
 public:
  static ExtDevAPI* Global() {
    // never destroyed: tensors may be released after all static objects
    static ExtDevAPI* api = new ExtDevAPI();
    return api;
  }

  void SetDevice(tvm::Device device) final { ExtDevMemory().Use(device.device_id); }

  void GetAttr(tvm::Device device, tvm::runtime::DeviceAttrKind kind, ffi::Any* result) final {
    switch (kind) {
      case tvm::runtime::kExist:
        *result = static_cast<int>(device.device_id < ExtDevMemory().num_devices());
        break;
      case tvm::runtime::kDeviceName:
        *result = ffi::String(ExtDevMemory().name());
        break;
      case tvm::runtime::kMaxThreadsPerBlock:
        *result = 1024;
        break;
      case tvm::runtime::kWarpSize:
        *result = 32;
        break;
      default:
        break;
    }
  }

  void* AllocDataSpace(tvm::Device device, size_t bytes, size_t alignment, DLDataType) final {
    return ExtDevMemory().Allocate(device.device_id, bytes, alignment);
  }

  void FreeDataSpace(tvm::Device device, void* data) final { ExtDevMemory().Free(device.device_id, data); }

  void* AllocWorkspace(tvm::Device device, size_t bytes, DLDataType) final {
    return ExtDevMemory().TakeWorkspace(device.device_id, bytes);
  }

  void FreeWorkspace(tvm::Device device, void* data) final { ExtDevMemory().GiveWorkspace(device.device_id, data); }

  void StreamSync(tvm::Device device, TVMStreamHandle stream) final {
    ExtDevMemory().Synchronize(device.device_id, stream);
  }

  TVMStreamHandle CreateStream(tvm::Device device) final { return ExtDevMemory().CreateStream(device.device_id); }

  void FreeStream(tvm::Device device, TVMStreamHandle stream) final {
    ExtDevMemory().FreeStream(device.device_id, stream);
  }

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t bytes,
                      tvm::Device from_device, tvm::Device to_device, DLDataType, TVMStreamHandle stream) final {
    if (bytes == 0) return;
    const char* source = static_cast<const char*>(from) + from_offset;
    char* target = static_cast<char*>(to) + to_offset;
    ExtDevMemory().Copy(source, from_device, target, to_device, bytes, stream);
  }
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def_packed("device_api.ext_dev", [](ffi::PackedArgs, ffi::Any* result) {
    tvm::runtime::DeviceAPI* api = ExtDevAPI::Global();
    *result = static_cast<void*>(api);
  });
}

}  // namespace uir::runtime
