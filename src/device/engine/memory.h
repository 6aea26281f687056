// SPDX-License-Identifier: Apache-2.0
// Global memory of a modelled device: allocations with red zones that know which bytes were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/engine/byte_set.h"
#include "device/engine/race.h"

namespace uir::engine {

/*! \brief One allocation. A released one is kept until its addresses are given again, for reports. */
struct Allocation {
  uint8_t* data{nullptr};
  size_t bytes{0};
  std::string label;
  bool live{true};
  ByteSet written;
  /*! \brief Bytes that stand for values that nobody computed; of no size until there are any. */
  ByteSet stand_in;
  RaceShadow race;

  /*! \brief Whether [address, address + count) lies inside. */
  bool Holds(const void* address, size_t count) const {
    size_t offset = static_cast<size_t>(static_cast<const uint8_t*>(address) - data);
    return live && offset <= bytes && count <= bytes - offset;
  }
  /*! \brief Whether any byte of [offset, offset + count) is a stand-in. */
  bool StandsIn(size_t offset, size_t count) const;
  /*! \brief Say whether they are. */
  void SetStandIn(size_t offset, size_t count, bool stands_in);
};

//! \brief The memory of one device.
//!
//! Addresses come from one reserved range of the process. Every allocation begins on a page of 64 KiB and is
//! followed by at least one page that cannot be accessed, so that an address a little outside of an allocation
//! lies in no other; `Find` is one table look-up.
class Memory {
 public:
  static Memory& Global();

  /*! \brief Allocate; nothing counts as written. Null when the range or the machine is exhausted. */
  void* Alloc(size_t bytes, size_t alignment, std::string label);
  /*! \brief Release; false when `address` begins no live allocation. */
  bool Release(void* address);

  /*! \brief Whether the address lies in the device's range, allocated or not. */
  bool InRange(const void* address) const { return reinterpret_cast<uintptr_t>(address) - base_ < size_; }

  /*! \brief The allocation whose pages hold the address (its red zone included), or null. Not locked: for launches. */
  Allocation* Find(const void* address) const {
    uintptr_t offset = reinterpret_cast<uintptr_t>(address) - base_;
    return offset < size_ ? owner_[offset >> kPageBits] : nullptr;
  }

  /*! \brief The live allocation that holds the whole range, or null. */
  Allocation* Holding(const void* address, size_t bytes) const;

  /*! \brief Copy between host and device memory with the state of the bytes; false when a range leaves its allocation.
   */
  bool Copy(void* to, const void* from, size_t bytes);

  /*! \brief Forget who accessed what, in all allocations: before generations of accesses are used again. */
  void ForgetAccesses();

  static constexpr int kPageBits = 16;

 private:
  Memory();

  uintptr_t base_{0};
  size_t size_{0};
  size_t next_{0};
  /*! \brief For each page the allocation that it belongs to; a sparse mapping. */
  Allocation** owner_{nullptr};
  std::multimap<size_t, size_t> released_;                     // pages -> offset, oldest first among equals
  std::map<size_t, std::unique_ptr<Allocation>> allocations_;  // by offset
  mutable std::mutex mutex_;
};

}  // namespace uir::engine
