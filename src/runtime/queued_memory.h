// SPDX-License-Identifier: Apache-2.0
// `ext_dev` as the memory of a vendor's devices, whose runtime copies and waits by queues.
#pragma once

#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>

#include "runtime/device_memory.h"
#include "runtime/workspace_pool.h"

namespace uir::runtime {

//! \brief What devices of all vendors do alike.
//!
//! `Calls` are the runtime's own: Allocate and Free of the current device, CopyWithin (queued) and CopyHost (at once)
//! between addresses, Synchronize, Create and Destroy of queues, UseDevice.
template <typename Calls>
class QueuedMemory : public DeviceMemory {
 public:
  void Use(int device) final { Calls::UseDevice(device); }

  void* Allocate(int device, size_t bytes, size_t alignment) final {
    Use(device);
    return Calls::Allocate(bytes, alignment);
  }

  void Free(int device, void* data) final {
    Use(device);
    Calls::Free(data);
  }

  void* TakeWorkspace(int device, size_t bytes) final {
    return pool_.Take(device, TVMFFIEnvGetStream(kDLExtDev, device), bytes);
  }

  void GiveWorkspace(int, void* data) final { pool_.Give(data); }

  void Copy(const void* from, DLDevice from_device, void* to, DLDevice to_device, size_t bytes, void* queue) final {
    const bool reads = from_device.device_type == kDLExtDev, writes = to_device.device_type == kDLExtDev;
    Use(reads ? from_device.device_id : to_device.device_id);
    if (reads && writes) return Calls::CopyWithin(to, from, bytes, queue);
    // a copy with the host's memory does not wait for queues by itself
    Calls::Synchronize(queue);
    Calls::CopyHost(to, from, bytes, reads);
  }

  void Synchronize(int device, void* queue) final {
    Use(device);
    Calls::Synchronize(queue);
  }

  void* CreateStream(int device) final {
    Use(device);
    return Calls::Create();
  }

  void FreeStream(int device, void* queue) final {
    pool_.FreeStream(device, queue);
    Use(device);
    Calls::Destroy(queue);
  }

 private:
  WorkspacePool pool_{{[this](int device, size_t bytes) { return Allocate(device, bytes, 0); },
                       [this](int device, void* queue, void* data) {
                         Synchronize(device, queue);
                         Free(device, data);
                       }}};
};

}  // namespace uir::runtime
