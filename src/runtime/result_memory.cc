// SPDX-License-Identifier: Apache-2.0
#include "runtime/result_memory.h"

#include <pthread.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/large_pages.h"

namespace uir::runtime {

namespace ffi = tvm::ffi;

namespace {

constexpr size_t kResultAlignment = 64, kPage = 4096;
/*! Bytes that are kept; a block that would exceed them drops all others, whose sizes may never be asked for again. */
constexpr size_t kMostKept = size_t{256} << 20;

/*! Blocks by size; results are given back from any thread. */
class Blocks {
 public:
  void* Take(size_t bytes) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = free_.find(bytes);
      if (found != free_.end() && !found->second.empty()) {
        void* block = found->second.back();
        found->second.pop_back();
        kept_ -= bytes;
        return block;
      }
    }
    return AlignedBlock(kResultAlignment, bytes);
  }

  void Give(void* block, size_t bytes) {
    std::vector<void*> dropped;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (bytes > kMostKept) {
        dropped.push_back(block);
      } else {
        if (kept_ + bytes > kMostKept) {
          for (auto& [size, blocks] : free_) dropped.insert(dropped.end(), blocks.begin(), blocks.end());
          free_.clear();
          kept_ = 0;
        }
        free_[bytes].push_back(block);
        kept_ += bytes;
      }
    }
    for (void* each : dropped) std::free(each);
  }

  void Hold() { mutex_.lock(); }
  void Release() { mutex_.unlock(); }

  size_t kept() {
    std::lock_guard<std::mutex> lock(mutex_);
    return kept_;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  size_t kept_ = 0;
};

Blocks& AllBlocks() {
  // never destroyed: results may outlive everything
  static auto* blocks = new Blocks();
  // a fork waits until no thread is at them, since the child has none that would go on
  static const int once = pthread_atfork([] { blocks->Hold(); }, [] { blocks->Release(); }, [] { blocks->Release(); });
  static_cast<void>(once);
  return *blocks;
}

size_t Rounded(const DLTensor& tensor) {
  const size_t bytes = std::max<size_t>(1, ffi::GetDataSize(tensor));
  const size_t step = bytes <= kPage ? kResultAlignment : kPage;
  return (bytes + step - 1) / step * step;
}

struct Allocator {
  void AllocData(DLTensor* tensor) { tensor->data = AllBlocks().Take(Rounded(*tensor)); }
  void FreeData(DLTensor* tensor) { AllBlocks().Give(tensor->data, Rounded(*tensor)); }
};

TVM_FFI_STATIC_INIT_BLOCK() { ffi::reflection::GlobalDef().def("uir.runtime.kept_bytes", &KeptBytes); }

}  // namespace

ffi::Tensor NewResult(const ffi::Shape& shape, DLDataType dtype) {
  return ffi::Tensor::FromNDAlloc(Allocator(), shape, dtype, DLDevice{kDLCPU, 0});
}

int64_t KeptBytes() { return static_cast<int64_t>(AllBlocks().kept()); }

}  // namespace uir::runtime
