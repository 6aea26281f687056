// SPDX-License-Identifier: Apache-2.0
// How 16-byte chunks of a tile in shared memory change places.
#pragma once

#include <cstdint>

namespace uir::codegen::cuda {

//! \brief Byte b of a tile lies at b ^ (b / line % places * step).
//!
//! `step` is a multiple of 16 bytes and `places * step` at most 128, so that runs of 16 bytes stay together and every
//! 128 bytes keep what they hold; `line` is a multiple of 128, so that the same again takes it back.  {128, 8, 16} is
//! the 128-byte pattern of the instructions that read shared memory by themselves.
struct Swizzle {
  int64_t line = 128;
  int places = 1;
  int step = 16;

  bool none() const { return places == 1; }
  int64_t operator()(int64_t byte) const { return byte ^ (byte / line % places * step); }
};

}  // namespace uir::codegen::cuda
