// SPDX-License-Identifier: Apache-2.0
// The known bits of a core's memory: all ones in each byte that holds a value that somebody wrote.
#pragma once

#include <cstdint>
#include <cstring>

namespace uir::engine {

/*! \brief Whether all of the bytes are known. */
inline bool AllKnown(const uint8_t* known, int64_t bytes) {
  if (bytes <= 0) return true;
  // All bytes are alike when each is like its neighbour.
  return known[0] == 0xFF && std::memcmp(known, known + 1, static_cast<size_t>(bytes - 1)) == 0;
}

inline void SetKnown(uint8_t* known, int64_t bytes, bool value = true) {
  std::memset(known, value ? 0xFF : 0, static_cast<size_t>(bytes));
}

}  // namespace uir::engine
