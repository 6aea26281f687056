// SPDX-License-Identifier: Apache-2.0
/*!
 * \file ext_dev_api.cc
 * \brief TVM's device `ext_dev`: the memory of the host model, with its red zones and its record of written bytes.
 */
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include <algorithm>

#include "device/simt/simt.h"
#include "runtime/error.h"

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

  void SetDevice(tvm::Device) final {}

  void GetAttr(tvm::Device device, tvm::runtime::DeviceAttrKind kind, ffi::Any* result) final {
    switch (kind) {
      case tvm::runtime::kExist:
        *result = static_cast<int>(device.device_id == 0);
        break;
      case tvm::runtime::kDeviceName:
        *result = ffi::String("host model of CUDA devices");
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

  void* AllocDataSpace(tvm::Device, size_t bytes, size_t alignment, DLDataType) final {
    void* data = uir_simt_alloc(std::max<size_t>(bytes, 1), alignment, nullptr);
    if (!data) {
      DeviceError({"The host model has no memory left.", "", std::to_string(bytes) + " bytes", "",
                   "run a smaller batch, or on a GPU"});
    }
    return data;
  }

  void FreeDataSpace(tvm::Device, void* data) final { uir_simt_release(data); }

  void StreamSync(tvm::Device, TVMStreamHandle) final {}

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t bytes, tvm::Device,
                      tvm::Device, DLDataType, TVMStreamHandle) final {
    if (bytes == 0) return;
    const char* source = static_cast<const char*>(from) + from_offset;
    char* target = static_cast<char*>(to) + to_offset;
    if (uir_simt_copy(target, source, bytes)) {
      DeviceError({"A copy leaves its memory on the host model.", "", std::to_string(bytes) + " bytes", "", ""});
    }
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
