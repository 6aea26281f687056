// SPDX-License-Identifier: Apache-2.0
/*!
 * \file known.h
 * \brief The known bits of a core's memory: all ones in each byte that holds a value that somebody wrote.
 */
#ifndef UIR_DEVICE_ENGINE_KNOWN_H_
#define UIR_DEVICE_ENGINE_KNOWN_H_

#include <cstdint>
#include <cstring>

namespace uir {
namespace engine {

/*! \brief Whether all of the bytes are known. */
inline bool AllKnown(const uint8_t* known, int64_t bytes) {
  if (bytes <= 0) return true;
  // All bytes are alike when each is like its neighbour.
  return known[0] == 0xFF && std::memcmp(known, known + 1, static_cast<size_t>(bytes - 1)) == 0;
}

inline void SetKnown(uint8_t* known, int64_t bytes, bool value = true) {
  std::memset(known, value ? 0xFF : 0, static_cast<size_t>(bytes));
}

}  // namespace engine
}  // namespace uir

#endif  // UIR_DEVICE_ENGINE_KNOWN_H_
