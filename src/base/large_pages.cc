// SPDX-License-Identifier: Apache-2.0
#include "base/large_pages.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <new>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace uir {
namespace {

#ifdef MADV_HUGEPAGE
/*! \brief Gathers pages at once; Linux 6.1 and later, and older headers have no word for it. */
constexpr int kCollapse = 25;

/*! \brief Tenths of a large page that pieces have to fill: so much more may be resident afterwards. */
constexpr size_t kFilledTenths = 9;

/*! \brief Whether the system has large pages for those who ask: gathering would not heed that it has none. */
bool HasLargePages() {
  static const bool has = [] {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string text;
    return std::getline(file, text) && text.find("[never]") == std::string::npos;
  }();
  return has;
}

/*! \brief Bytes of each large page that pieces fill, by its number. */
std::map<uintptr_t, size_t> FilledBy(const std::vector<MemoryRange>& pieces) {
  std::map<uintptr_t, size_t> filled;
  for (const MemoryRange& piece : pieces) {
    const auto begin = reinterpret_cast<uintptr_t>(piece.begin), end = begin + piece.bytes;
    for (uintptr_t at = begin; at < end;) {
      const uintptr_t next = std::min(end, (at / kLargePage + 1) * kLargePage);
      filled[at / kLargePage] += next - at;
      at = next;
    }
  }
  return filled;
}

void Gather(uintptr_t first, uintptr_t end) {
  auto* begin = reinterpret_cast<void*>(first * kLargePage);
  const size_t bytes = (end - first) * kLargePage;
  if (madvise(begin, bytes, kCollapse) != 0) madvise(begin, bytes, MADV_HUGEPAGE);
}
#endif

}  // namespace

void* AlignedBlock(size_t alignment, size_t bytes) {
  const bool large = bytes >= kLargeBlock;
  void* block = nullptr;
  if (posix_memalign(&block, large ? std::max(alignment, kLargePage) : alignment, bytes) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // what is behind the last whole one stays in small ones, so that nothing is resident but the block
  if (large) madvise(block, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return block;
}

void ReadOften::Add(const std::vector<MemoryRange>& pieces) {
#ifdef MADV_HUGEPAGE
  if (!HasLargePages()) return;
  std::vector<MemoryRange> fresh;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const MemoryRange& piece : pieces) {
    if (piece.bytes > 0 && known_.insert(piece.begin).second) fresh.push_back(piece);
  }
  uintptr_t first = 0, end = 0;
  for (const auto& [number, bytes] : FilledBy(fresh)) {
    if (bytes < kLargePage / 10 * kFilledTenths) continue;
    if (number != end) {
      if (first < end) Gather(first, end);
      first = number;
    }
    end = number + 1;
  }
  if (first < end) Gather(first, end);
#endif
}

}  // namespace uir
