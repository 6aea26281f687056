// SPDX-License-Identifier: Apache-2.0
// One launch at a time, on whichever model.
#pragma once

#include <mutex>

namespace uir::engine {

//! \brief Held by a launch from its first step to its answer.
//!
//! The models share the loaded kernels, the memory with its generations of accesses and the source lines: a lock of
//! each model's own would let a launch on one change them under a launch on another.
inline std::mutex& LaunchLock() {
  // never destroyed: launches may come from destructors of static objects
  static auto* lock = new std::mutex();
  return *lock;
}

}  // namespace uir::engine
