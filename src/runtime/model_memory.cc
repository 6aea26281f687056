// SPDX-License-Identifier: Apache-2.0
// `ext_dev` as the memory of the host models.
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>

#include "device/engine/engine_api.h"
#include "runtime/device_memory.h"
#include "runtime/error.h"

namespace uir::runtime {

namespace {

constexpr size_t kWorkspaceAlignment = 256;

class Model final : public DeviceMemory {
 public:
  const char* place() const final { return "model"; }
  std::string name() const final { return "host model of devices"; }
  int num_devices() const final { return 1; }
  void Use(int) final {}

  void* Allocate(int, size_t bytes, size_t alignment) final {
    void* data = uir_simt_alloc(std::max<size_t>(bytes, 1), alignment, nullptr);
    if (!data) {
      DeviceError({"The host model has no memory left.", "", std::to_string(bytes) + " bytes", "",
                   "run a smaller batch, or on a device"});
    }
    return data;
  }

  void Free(int, void* data) final { uir_simt_release(data); }

  // anew for every call: what an earlier one wrote counts for nothing
  void* TakeWorkspace(int device, size_t bytes) final { return Allocate(device, bytes, kWorkspaceAlignment); }
  void GiveWorkspace(int device, void* data) final { Free(device, data); }

  void Copy(const void* from, DLDevice, void* to, DLDevice, size_t bytes, void*) final {
    if (uir_simt_copy(to, from, bytes)) {
      DeviceError({"A copy leaves its memory on the host model.", "", std::to_string(bytes) + " bytes", "", ""});
    }
  }

  void Synchronize(int, void*) final {}
  void* CreateStream(int) final { return nullptr; }
  void FreeStream(int, void*) final {}
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterMemory({"model", []() -> DeviceMemory* {
                    static Model* memory = new Model();
                    return memory;
                  }});
}

}  // namespace uir::runtime
