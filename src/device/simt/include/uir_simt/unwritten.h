// SPDX-License-Identifier: Apache-2.0
// What registers hold that nothing wrote, by type, all derived from one NaN of float with a payload.
//
// The payload survives arithmetic and conversions to narrower floats; integers are of its lowest byte.
#pragma once

#include <stdint.h>

namespace uir_simt {

inline uint32_t unwritten_bytes(uint32_t nan) { return (nan & 0xff) * 0x01010101u; }
inline uint16_t unwritten_half(uint32_t nan) { return static_cast<uint16_t>(0x7c00 | (nan & 0x7fffff) >> 13); }
inline uint16_t unwritten_bfloat16(uint32_t nan) { return static_cast<uint16_t>(nan >> 16); }
inline uint32_t unwritten_tf32(uint32_t nan) { return nan & ~0x1fffu; }
inline uint64_t unwritten_double(uint32_t nan) {
  return uint64_t{0x7ff} << 52 | static_cast<uint64_t>(nan & 0x7fffff) << 29;
}

}  // namespace uir_simt
