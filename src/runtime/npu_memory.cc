// SPDX-License-Identifier: Apache-2.0
// `ext_dev` as the memory of Ascend NPUs.
#include <tvm/ffi/reflection/registry.h>

#include "base/rounding.h"
#include "runtime/acl_api.h"
#include "runtime/queued_memory.h"

namespace uir::runtime {

namespace {

/*! \brief Memory behind a tensor that wide transfers may read and write: they move whole blocks of 32 bytes. */
constexpr size_t kBlock = 32;

struct NpuCalls {
  static void UseDevice(int device) { acl::UseDevice(device); }
  /*! \brief ACL gives multiples of 64 bytes at least ("aclrtMalloc"), more than TVM asks for. */
  static void* Allocate(size_t bytes, size_t) {
    void* data = nullptr;
    acl::Check(acl::Require().Malloc(&data, RoundUp(bytes, kBlock) + kBlock, acl::kMallocHugeFirst), "aclrtMalloc",
               std::to_string(bytes) + " bytes");
    return data;
  }
  static void Free(void* data) { acl::Check(acl::Require().Free(data), "aclrtFree"); }
  static void CopyWithin(void* to, const void* from, size_t bytes, void* stream) {
    acl::Check(acl::Require().MemcpyAsync(to, bytes, from, bytes, acl::CopyKind::kDeviceToDevice, stream),
               "aclrtMemcpyAsync");
  }
  static void* AllocateHost(size_t bytes) {
    void* data = nullptr;
    const acl::Api& api = acl::Require();
    return api.MallocHost && api.FreeHost && api.MallocHost(&data, bytes) == acl::kSuccess ? data : nullptr;
  }
  static void FreeHost(void* data) { acl::Check(acl::Require().FreeHost(data), "aclrtFreeHost"); }
  static void CopyStaged(void* to, const void* from, size_t bytes, void* stream) {
    acl::Check(acl::Require().MemcpyAsync(to, bytes, from, bytes, acl::CopyKind::kHostToDevice, stream),
               "aclrtMemcpyAsync");
  }
  static void CopyHost(void* to, const void* from, size_t bytes, bool to_host) {
    acl::CopyKind kind = to_host ? acl::CopyKind::kDeviceToHost : acl::CopyKind::kHostToDevice;
    acl::Check(acl::Require().Memcpy(to, bytes, from, bytes, kind), "aclrtMemcpy");
  }
  static void Synchronize(void* stream) {
    acl::Check(acl::Require().SynchronizeStream(stream), "aclrtSynchronizeStream");
  }
  static void* Create() {
    acl::Stream stream = nullptr;
    acl::Check(acl::Require().CreateStream(&stream), "aclrtCreateStream");
    return stream;
  }
  static void Destroy(void* stream) { acl::Check(acl::Require().DestroyStream(stream), "aclrtDestroyStream"); }
};

class Npu final : public QueuedMemory<NpuCalls> {
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
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterMemory({"npu", []() -> DeviceMemory* {
                    if (!acl::Load()) return nullptr;
                    static Npu* memory = new Npu();
                    return memory;
                  }});
}

}  // namespace uir::runtime
