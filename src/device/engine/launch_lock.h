// SPDX-License-Identifier: Apache-2.0
/*!
 * \file launch_lock.h
 * \brief One launch at a time, on whichever model.
 */
#ifndef UIR_DEVICE_ENGINE_LAUNCH_LOCK_H_
#define UIR_DEVICE_ENGINE_LAUNCH_LOCK_H_

#include <mutex>

namespace uir {
namespace engine {

/*!
 * \brief Held by a launch from its first step to its answer.
 *
 * The models share the loaded kernels, the memory with its generations of accesses and the source lines: a lock of
 * each model's own would let a launch on one change them under a launch on another.
 */
inline std::mutex& LaunchLock() {
  // never destroyed: launches may come from destructors of static objects
  static auto* lock = new std::mutex();
  return *lock;
}

}  // namespace engine
}  // namespace uir

#endif  // UIR_DEVICE_ENGINE_LAUNCH_LOCK_H_
