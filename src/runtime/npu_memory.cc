// SPDX-License-Identifier: Apache-2.0
/*!
 * \file npu_memory.cc
 * \brief `ext_dev` as the memory of Ascend NPUs.
 */
#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>

#include "runtime/acl_api.h"
#include "runtime/device_memory.h"
#include "runtime/error.h"
#include "runtime/workspace_pool.h"

namespace uir::runtime {

namespace {

/*! \brief Memory behind a tensor that wide transfers may read and write: they move whole blocks of 32 bytes. */
constexpr size_t kBlock = 32;

class Npu final : public DeviceMemory {
 public:
  const char* place() const final { return "npu"; }

  std::string name() const final {
    const char* soc = acl::Require().GetSocName();
    return soc ? soc : "Ascend NPU";
  }

  int num_devices() const final {
    uint32_t count = 0;
    acl::Check(acl::Require().GetDeviceCount(&count), "aclrtGetDeviceCount");
    return static_cast<int>(count);
  }

  void Use(int device) final { acl::UseDevice(device); }

  /*! \param alignment ACL gives multiples of 64 bytes at least ("aclrtMalloc"), more than TVM asks for. */
  void* Allocate(int device, size_t bytes, size_t) final {
    acl::UseDevice(device);
    void* data = nullptr;
    size_t whole = (bytes + kBlock - 1) / kBlock * kBlock + kBlock;
    acl::Check(acl::Require().Malloc(&data, whole, acl::kMallocHugeFirst), "aclrtMalloc",
               std::to_string(bytes) + " bytes");
    return data;
  }

  void Free(int device, void* data) final {
    acl::UseDevice(device);
    acl::Check(acl::Require().Free(data), "aclrtFree");
  }

  void* TakeWorkspace(int device, size_t bytes) final {
    return pool_.Take(device, TVMFFIEnvGetStream(kDLExtDev, device), bytes);
  }

  void GiveWorkspace(int, void* data) final { pool_.Give(data); }

  void Copy(const void* from, DLDevice from_device, void* to, DLDevice to_device, size_t bytes, void* stream) final {
    bool reads = from_device.device_type == kDLExtDev, writes = to_device.device_type == kDLExtDev;
    acl::UseDevice(reads ? from_device.device_id : to_device.device_id);
    const acl::Api& api = acl::Require();
    if (reads && writes) {
      acl::Check(api.MemcpyAsync(to, bytes, from, bytes, acl::CopyKind::kDeviceToDevice, stream), "aclrtMemcpyAsync");
      return;
    }
    // the host's memory is not pinned, so that a copy would not wait for the stream by itself
    acl::Check(api.SynchronizeStream(stream), "aclrtSynchronizeStream");
    acl::CopyKind kind = reads ? acl::CopyKind::kDeviceToHost : acl::CopyKind::kHostToDevice;
    acl::Check(api.Memcpy(to, bytes, from, bytes, kind), "aclrtMemcpy");
  }

  void Synchronize(int device, void* stream) final {
    acl::UseDevice(device);
    acl::Check(acl::Require().SynchronizeStream(stream), "aclrtSynchronizeStream");
  }

  void* CreateStream(int device) final {
    acl::UseDevice(device);
    acl::Stream stream = nullptr;
    acl::Check(acl::Require().CreateStream(&stream), "aclrtCreateStream");
    return stream;
  }

  void FreeStream(int device, void* stream) final {
    pool_.FreeStream(device, stream);
    acl::UseDevice(device);
    acl::Check(acl::Require().DestroyStream(stream), "aclrtDestroyStream");
  }

 private:
  WorkspacePool pool_{{[this](int device, size_t bytes) { return Allocate(device, bytes, kBlock); },
                       [this](int device, void* stream, void* data) {
                         Synchronize(device, stream);
                         Free(device, data);
                       }}};
};

}  // namespace

DeviceMemory* NpuMemory() {
  if (!acl::Load()) return nullptr;
  static Npu* memory = new Npu();
  return memory;
}

}  // namespace uir::runtime
