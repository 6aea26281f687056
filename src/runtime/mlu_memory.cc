// SPDX-License-Identifier: Apache-2.0
/*!
 * \file mlu_memory.cc
 * \brief `ext_dev` as the memory of Cambricon MLUs.
 */
#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <cstdint>

#include "runtime/cnrt_api.h"
#include "runtime/device_memory.h"
#include "runtime/error.h"
#include "runtime/workspace_pool.h"

namespace uir::runtime {

namespace {

class Mlu final : public DeviceMemory {
 public:
  const char* place() const final { return "mlu"; }

  std::string name() const final { return cnrt::NameOf(0); }

  int num_devices() const final {
    unsigned int count = 0;
    cnrt::Check(cnrt::Require().GetDeviceCount(&count), "cnrtGetDeviceCount");
    return static_cast<int>(count);
  }

  void Use(int device) final { cnrt::UseDevice(device); }

  void* Allocate(int device, size_t bytes, size_t alignment) final {
    cnrt::UseDevice(device);
    void* data = nullptr;
    cnrt::Check(cnrt::Require().Malloc(&data, std::max<size_t>(bytes, 1)), "cnrtMalloc",
                std::to_string(bytes) + " bytes");
    // the reference promises no alignment; addresses that were seen are multiples of 256 and more
    if (alignment && reinterpret_cast<uintptr_t>(data) % alignment) {
      DeviceError({"cnrtMalloc gave an address that TVM does not take.", "",
                   "a multiple of " + std::to_string(alignment) + " bytes", "", "report it with the driver's version"});
    }
    return data;
  }

  void Free(int device, void* data) final {
    cnrt::UseDevice(device);
    cnrt::Check(cnrt::Require().Free(data), "cnrtFree");
  }

  void* TakeWorkspace(int device, size_t bytes) final {
    return pool_.Take(device, TVMFFIEnvGetStream(kDLExtDev, device), bytes);
  }

  void GiveWorkspace(int, void* data) final { pool_.Give(data); }

  void Copy(const void* from, DLDevice from_device, void* to, DLDevice to_device, size_t bytes, void* queue) final {
    bool reads = from_device.device_type == kDLExtDev, writes = to_device.device_type == kDLExtDev;
    cnrt::UseDevice(reads ? from_device.device_id : to_device.device_id);
    const cnrt::Api& api = cnrt::Require();
    void* source = const_cast<void*>(from);  // CNRT declares sources so
    if (reads && writes) {
      cnrt::Check(api.MemcpyAsync(to, source, bytes, queue, cnrt::Direction::kDeviceToDevice), "cnrtMemcpyAsync");
      return;
    }
    // a synchronous copy does not wait for queues
    cnrt::Check(api.QueueSync(queue), "cnrtQueueSync");
    cnrt::Direction direction = reads ? cnrt::Direction::kDeviceToHost : cnrt::Direction::kHostToDevice;
    cnrt::Check(api.Memcpy(to, source, bytes, direction), "cnrtMemcpy");
  }

  void Synchronize(int device, void* queue) final {
    cnrt::UseDevice(device);
    cnrt::Check(cnrt::Require().QueueSync(queue), "cnrtQueueSync");
  }

  void* CreateStream(int device) final {
    cnrt::UseDevice(device);
    cnrt::Queue queue = nullptr;
    cnrt::Check(cnrt::Require().QueueCreate(&queue), "cnrtQueueCreate");
    return queue;
  }

  void FreeStream(int device, void* queue) final {
    pool_.FreeStream(device, queue);
    cnrt::UseDevice(device);
    cnrt::Check(cnrt::Require().QueueDestroy(queue), "cnrtQueueDestroy");
  }

 private:
  WorkspacePool pool_{{[this](int device, size_t bytes) { return Allocate(device, bytes, 0); },
                       [this](int device, void* stream, void* data) {
                         Synchronize(device, stream);
                         Free(device, data);
                       }}};
};

}  // namespace

DeviceMemory* MluMemory() {
  if (!cnrt::Load()) return nullptr;
  static Mlu* memory = new Mlu();
  return memory;
}

}  // namespace uir::runtime
