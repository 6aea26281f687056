// SPDX-License-Identifier: Apache-2.0
// Page-locked memory of the host, from which copies to devices are queued.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "base/rounding.h"

namespace uir::runtime {

//! \brief Memory for what the host writes to devices, a block for each queue that is written on.
//!
//! A copy from page-locked memory runs in its turn on the queue, and the host goes on: what it wrote from is its own
//! again.  A block is begun anew when the host has waited for its queue, which a call does where it reads its result.
class Staging {
 public:
  /*! \brief Allocates, nullptr where the runtime has no such memory left; frees. */
  struct Source {
    std::function<void*(int device, size_t bytes)> allocate;
    std::function<void(int device, void* data)> free;
  };

  /*! \brief Larger ones take the host longer to copy than the queue to be waited for. */
  static constexpr size_t kMost = 64 << 10;
  static constexpr size_t kBlock = 4 * kMost;
  /*! \brief What older releases of the Ascend runtime want addresses to be multiples of. */
  static constexpr size_t kAlignment = 64;

  explicit Staging(Source source) : source_(std::move(source)) {}

  //! \brief Puts bytes into memory of a queue, and has `enqueue(address)` queue their copy.
  //! \return Whether there was room; where there was none, nothing was done.
  template <typename Enqueue>
  bool Put(int device, void* queue, const void* from, size_t bytes, const Enqueue& enqueue) {
    if (bytes > kMost) return false;
    std::lock_guard<std::mutex> guard(lock_);
    Block& block = blocks_[{device, queue}];
    if (!block.data) block.data = static_cast<char*>(source_.allocate(device, kBlock));
    if (!block.data || block.used + bytes > kBlock) return false;
    char* piece = block.data + block.used;
    std::memcpy(piece, from, bytes);
    enqueue(piece);
    block.used = RoundUp(block.used + bytes, kAlignment);
    ++block.copies;
    return true;
  }

  /*! \brief Waits for a queue by `wait()`; what was put on it before is free then. */
  template <typename Wait>
  void WaitedFor(int device, void* queue, const Wait& wait) {
    const std::pair<int, void*> key(device, queue);
    size_t copies = 0;
    {
      std::lock_guard<std::mutex> guard(lock_);
      auto found = blocks_.find(key);
      if (found != blocks_.end()) copies = found->second.copies;
    }
    wait();
    std::lock_guard<std::mutex> guard(lock_);
    auto found = blocks_.find(key);
    // another thread may have put more, which was not waited for
    if (found != blocks_.end() && found->second.copies == copies) found->second.used = 0;
  }

  /*! \brief Frees the memory of a queue, whose work is done. */
  void FreeQueue(int device, void* queue) {
    void* data = nullptr;
    {
      std::lock_guard<std::mutex> guard(lock_);
      auto found = blocks_.find({device, queue});
      if (found == blocks_.end()) return;
      data = found->second.data;
      blocks_.erase(found);
    }
    if (data) source_.free(device, data);
  }

 private:
  struct Block {
    char* data = nullptr;
    size_t used = 0;
    /*! \brief That were ever put. */
    size_t copies = 0;
  };

  Source source_;
  std::mutex lock_;
  std::map<std::pair<int, void*>, Block> blocks_;
};

}  // namespace uir::runtime
