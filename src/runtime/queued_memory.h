// SPDX-License-Identifier: Apache-2.0
// `ext_dev` as the memory of a vendor's devices, whose runtime copies and waits by queues.
#pragma once

#include <dlpack/dlpack.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/runtime/device_api.h>

#include "runtime/device_memory.h"
#include "runtime/staging.h"
#include "runtime/stream_pool.h"

namespace uir::runtime {

//! \brief What devices of all vendors do alike.
//!
//! `Calls` are the runtime's own: Allocate and Free of the current device, AllocateHost (nullptr where there is none)
//! and FreeHost of page-locked memory, CopyWithin and CopyStaged (queued) and CopyHost (at once) between addresses,
//! Synchronize, Create and Destroy of queues, UseDevice.
template <typename Calls>
class QueuedMemory : public DeviceMemory {
 public:
  void Use(int device) final { Calls::UseDevice(device); }

  void* Allocate(int device, size_t bytes, size_t alignment) final {
    if (alignment > tvm::runtime::kAllocAlignment) return New(device, bytes, alignment);
    const bool kept = bytes <= kMostKept;
    return pool_.Take(device, QueueOf(device, nullptr), kept ? SizeOf(bytes) : bytes, kept);
  }

  void Free(int device, void* data) final {
    if (pool_.Give(data)) return;
    Use(device);
    Calls::Free(data);
  }

  void* TakeWorkspace(int device, size_t bytes) final {
    return pool_.Take(device, QueueOf(device, nullptr), bytes, true);
  }

  void GiveWorkspace(int, void* data) final { pool_.Give(data); }

  void Copy(const void* from, DLDevice from_device, void* to, DLDevice to_device, size_t bytes, void* queue) final {
    const bool reads = from_device.device_type == kDLExtDev, writes = to_device.device_type == kDLExtDev;
    const int device = reads ? from_device.device_id : to_device.device_id;
    queue = QueueOf(device, queue);
    Use(device);
    if (reads && writes) return Calls::CopyWithin(to, from, bytes, queue);
    auto enqueue = [&](const void* staged) { Calls::CopyStaged(to, staged, bytes, queue); };
    if (writes && staging_.Put(device, queue, from, bytes, enqueue)) return;
    // a copy with the host's memory does not wait for queues by itself
    Wait(device, queue);
    Calls::CopyHost(to, from, bytes, reads);
  }

  void Synchronize(int device, void* queue) final {
    Use(device);
    Wait(device, QueueOf(device, queue));
  }

  void* CreateStream(int device) final {
    Use(device);
    return Calls::Create();
  }

  void FreeStream(int device, void* queue) final {
    Synchronize(device, queue);
    pool_.FreeStream(device, queue);
    staging_.FreeQueue(device, queue);
    Use(device);
    Calls::Destroy(queue);
  }

 private:
  /*! \brief Larger ones are freed when they are given back: a device has room for few that nobody uses. */
  static constexpr size_t kMostKept = 1 << 20;
  static constexpr size_t kLeast = 512;

  /*! \brief Sizes have a few values, so that one that was given back serves those alike. */
  static size_t SizeOf(size_t bytes) {
    size_t size = kLeast;
    while (size < bytes) size *= 2;
    return size;
  }

  /*! \brief What TVM's functions without a stream mean is the current one: what the tensors are used on. */
  static void* QueueOf(int device, void* queue) { return queue ? queue : TVMFFIEnvGetStream(kDLExtDev, device); }

  void* New(int device, size_t bytes, size_t alignment) {
    Use(device);
    return Calls::Allocate(bytes, alignment);
  }

  void Wait(int device, void* queue) {
    staging_.WaitedFor(device, queue, [queue] { Calls::Synchronize(queue); });
  }

  /*! \brief Frees what launches on a queue may still use. */
  void FreeBehind(int device, void* queue, void* data) {
    Use(device);
    try {
      Calls::Synchronize(queue);
    } catch (const tvm::ffi::Error&) {
      // a kernel that failed; who reads its result is told, and tensors are freed where nobody hears
    }
    Calls::Free(data);
  }

  StreamPool pool_{{[this](int device, size_t bytes) { return New(device, bytes, tvm::runtime::kAllocAlignment); },
                    [this](int device, void* queue, void* data) { FreeBehind(device, queue, data); }}};
  Staging staging_{{[this](int device, size_t bytes) {
                      Use(device);
                      return Calls::AllocateHost(bytes);
                    },
                    [this](int device, void* data) {
                      Use(device);
                      Calls::FreeHost(data);
                    }}};
};

}  // namespace uir::runtime
