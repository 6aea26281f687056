// SPDX-License-Identifier: Apache-2.0
// Threads of a modelled device: stacks of their own, switched by hand.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uir::engine {

/*! \brief The state of a fiber that does not run. */
struct FiberContext {
  void* state{nullptr};
};

/*! \brief Leave `from` (its state is kept there) and go on with `to`. */
void SwitchFiber(FiberContext* from, FiberContext* to);

/*! \brief Make a fiber that begins in `entry`, which must never return, on the given stack. */
void StartFiber(FiberContext* fiber, uint8_t* stack, size_t bytes, void (*entry)());

/*! \brief Stacks of equal size in one range of addresses, each above a page that cannot be accessed. */
class FiberStacks {
 public:
  static constexpr size_t kBytes = 128 * 1024;

  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks() { Unmap(); }

  /*! \brief Have at least `count` stacks; false when the system refuses. Stacks in use are lost when it grows. */
  bool Reserve(size_t count);
  uint8_t* Bottom(size_t index) const { return base_ + index * kBytes; }
  /*! \brief Bytes of a stack that are used: fewer for some, so that their tops do not share one cache set. */
  static size_t Usable(size_t index) { return kBytes - index % 64 * 192; }
  /*! \brief Which stack holds the address; -1 for none. */
  int64_t Owner(const void* address) const {
    size_t offset = static_cast<size_t>(static_cast<const uint8_t*>(address) - base_);
    return offset < count_ * kBytes ? static_cast<int64_t>(offset / kBytes) : -1;
  }

 private:
  void Unmap();

  uint8_t* base_{nullptr};
  size_t count_{0};
};

}  // namespace uir::engine
