// SPDX-License-Identifier: Apache-2.0
#include "device/engine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/rounding.h"

namespace uir::engine {

namespace {

constexpr size_t kPage = size_t{1} << Memory::kPageBits;

/*! \brief Reserve addresses without memory behind them; null when the system refuses. */
void* Reserve(size_t bytes, int protection) {
  void* at = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

bool Allocation::StandsIn(size_t offset, size_t count) const {
  constexpr size_t kAtOnce = 64;
  if (stand_in.empty()) return false;
  for (size_t at = 0; at < count; at += kAtOnce) {
    if (stand_in.HasAny(offset + at, std::min(kAtOnce, count - at))) return true;
  }
  return false;
}

void Allocation::SetStandIn(size_t offset, size_t count, bool stands_in) {
  if (stand_in.empty()) {
    if (!stands_in) return;
    stand_in.Resize(bytes);
  }
  if (stands_in) {
    stand_in.Insert(offset, count);
  } else {
    stand_in.Erase(offset, count);
  }
}

Memory& Memory::Global() {
  // Never destroyed: tensors that live until the end of the process release their memory after static destructors.
  static Memory* memory = new Memory();
  return *memory;
}

Memory::Memory() {
  // 256 GiB of addresses; less where the process may not reserve so much.
  for (size_t size = size_t{1} << 38; size >= size_t{1} << 30 && !base_; size >>= 1) {
    void* at = Reserve(size + kPage, PROT_NONE);
    if (!at) continue;
    base_ = (reinterpret_cast<uintptr_t>(at) + kPage - 1) & ~(kPage - 1);
    size_ = size;
  }
  if (base_) {
    owner_ = static_cast<Allocation**>(Reserve((size_ >> kPageBits) * sizeof(void*), PROT_READ | PROT_WRITE));
  }
  if (!owner_) size_ = 0;
}

void* Memory::Alloc(size_t bytes, size_t alignment, std::string label) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (alignment > kPage || bytes >= size_) return nullptr;
  size_t used = CeilDiv(bytes, kPage);
  size_t pages = used + 1;  // the red zone
  size_t offset = next_;
  if (next_ + pages * kPage <= size_) {
    next_ += pages * kPage;
  } else {
    auto found = released_.lower_bound(pages);
    if (found == released_.end()) return nullptr;
    pages = found->first;
    offset = found->second;
    released_.erase(found);
  }
  uint8_t* data = reinterpret_cast<uint8_t*>(base_ + offset);
  if (used && mprotect(data, used * kPage, PROT_READ | PROT_WRITE) != 0) {
    released_.emplace(pages, offset);
    return nullptr;
  }
  auto allocation = std::make_unique<Allocation>();
  allocation->data = data;
  allocation->bytes = bytes;
  allocation->label = std::move(label);
  allocation->written.Resize(bytes);
  allocation->race.Resize(bytes);
  for (size_t i = 0; i < pages; ++i) owner_[(offset >> kPageBits) + i] = allocation.get();
  allocations_[offset] = std::move(allocation);
  return data;
}

bool Memory::Release(void* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  Allocation* allocation = Find(address);
  if (!allocation || !allocation->live || allocation->data != address) return false;
  size_t offset = reinterpret_cast<uintptr_t>(address) - base_;
  size_t used = CeilDiv(allocation->bytes, kPage);
  size_t pages = 0;
  while (offset + pages * kPage < next_ && owner_[(offset >> kPageBits) + pages] == allocation) ++pages;
  if (used) {
    madvise(address, used * kPage, MADV_DONTNEED);
    mprotect(address, used * kPage, PROT_NONE);
  }
  allocation->live = false;
  allocation->written = ByteSet();
  allocation->stand_in = ByteSet();
  allocation->race = RaceShadow();
  released_.emplace(pages, offset);
  return true;
}

Allocation* Memory::Holding(const void* address, size_t bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  Allocation* allocation = Find(address);
  return allocation && allocation->Holds(address, bytes) ? allocation : nullptr;
}

void Memory::ForgetAccesses() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& entry : allocations_) {
    if (entry.second->live) entry.second->race.Clear();
  }
}

bool Memory::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return true;
  Allocation* target = InRange(to) ? Holding(to, bytes) : nullptr;
  Allocation* source = InRange(from) ? Holding(from, bytes) : nullptr;
  if ((InRange(to) && !target) || (InRange(from) && !source)) return false;
  std::memmove(to, from, bytes);
  if (!target) return true;
  size_t at = static_cast<size_t>(static_cast<uint8_t*>(to) - target->data);
  if (source) {
    size_t origin = static_cast<size_t>(static_cast<const uint8_t*>(from) - source->data);
    target->written.CopyFrom(source->written, origin, at, bytes);
    target->SetStandIn(at, bytes, source->StandsIn(origin, bytes));
  } else {
    target->SetStandIn(at, bytes, false);
    target->written.Insert(at, bytes);
  }
  return true;
}

}  // namespace uir::engine
