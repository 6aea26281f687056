// SPDX-License-Identifier: Apache-2.0
// `ext_dev` as the memory of Cambricon MLUs.
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstdint>

#include "runtime/cnrt_api.h"
#include "runtime/error.h"
#include "runtime/queued_memory.h"

namespace uir::runtime {

namespace {

struct MluCalls {
  static void UseDevice(int device) { cnrt::UseDevice(device); }
  static void* Allocate(size_t bytes, size_t alignment) {
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
  static void Free(void* data) { cnrt::Check(cnrt::Require().Free(data), "cnrtFree"); }
  // CNRT declares sources without const
  static void CopyWithin(void* to, const void* from, size_t bytes, void* queue) {
    cnrt::Check(
        cnrt::Require().MemcpyAsync(to, const_cast<void*>(from), bytes, queue, cnrt::Direction::kDeviceToDevice),
        "cnrtMemcpyAsync");
  }
  static void* AllocateHost(size_t bytes) {
    void* data = nullptr;
    const cnrt::Api& api = cnrt::Require();
    return api.HostMalloc && api.FreeHost && api.HostMalloc(&data, bytes) == cnrt::kSuccess ? data : nullptr;
  }
  static void FreeHost(void* data) { cnrt::Check(cnrt::Require().FreeHost(data), "cnrtFreeHost"); }
  static void CopyStaged(void* to, const void* from, size_t bytes, void* queue) {
    cnrt::Check(cnrt::Require().MemcpyAsync(to, const_cast<void*>(from), bytes, queue, cnrt::Direction::kHostToDevice),
                "cnrtMemcpyAsync");
  }
  static void CopyHost(void* to, const void* from, size_t bytes, bool to_host) {
    cnrt::Direction direction = to_host ? cnrt::Direction::kDeviceToHost : cnrt::Direction::kHostToDevice;
    cnrt::Check(cnrt::Require().Memcpy(to, const_cast<void*>(from), bytes, direction), "cnrtMemcpy");
  }
  static void Synchronize(void* queue) { cnrt::Check(cnrt::Require().QueueSync(queue), "cnrtQueueSync"); }
  static void* Create() {
    cnrt::Queue queue = nullptr;
    cnrt::Check(cnrt::Require().QueueCreate(&queue), "cnrtQueueCreate");
    return queue;
  }
  static void Destroy(void* queue) { cnrt::Check(cnrt::Require().QueueDestroy(queue), "cnrtQueueDestroy"); }
};

class Mlu final : public QueuedMemory<MluCalls> {
 public:
  const char* place() const final { return "mlu"; }

  std::string name() const final { return cnrt::NameOf(0); }

  int num_devices() const final {
    unsigned int count = 0;
    cnrt::Check(cnrt::Require().GetDeviceCount(&count), "cnrtGetDeviceCount");
    return static_cast<int>(count);
  }
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterMemory({"mlu", []() -> DeviceMemory* {
                    if (!cnrt::Load()) return nullptr;
                    static Mlu* memory = new Mlu();
                    return memory;
                  }});
}

}  // namespace uir::runtime
