// SPDX-License-Identifier: Apache-2.0
// Memory in large pages, of which fewer are looked up. All of it is advice: what the system makes of it changes no
// result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

namespace uir {

/*! \brief Bytes of a large page, and of the smallest block that begins on one. */
constexpr size_t kLargePage = size_t{2} << 20, kLargeBlock = size_t{4} << 20;

//! \brief Memory as of std::aligned_alloc, which std::free takes back. A block of kLargeBlock and more asks for large
//! pages before it is touched.
//! \exception std::bad_alloc There is none.
void* AlignedBlock(size_t alignment, size_t bytes);

/*! \brief Bytes that somebody holds. */
struct MemoryRange {
  const void* begin;
  size_t bytes;
};

//! \brief Memory of others that is read often and stays where it is: weights, state. Each piece asks once for large
//! pages, after it was written: where pieces fill nearly all of one, the system is to gather it.
class ReadOften {
 public:
  void Add(const std::vector<MemoryRange>& pieces);

 private:
  std::mutex mutex_;
  std::set<const void*> known_;
};

}  // namespace uir
