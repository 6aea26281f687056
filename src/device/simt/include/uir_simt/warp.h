// SPDX-License-Identifier: Apache-2.0
// Exchange between the lanes of a warp, and barriers, under CUDA's names.
#pragma once

#include "keywords.h"

namespace uir_simt {

template <typename T>
UIR_SIMT_INLINE uint64_t pack(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  uint64_t packed = 0;
  __builtin_memcpy(&packed, &value, sizeof(T));
  return packed;
}

template <typename T>
UIR_SIMT_INLINE T unpack(uint64_t packed) {
  T value;
  __builtin_memcpy(&value, &packed, sizeof(T));
  return value;
}

}  // namespace uir_simt

template <typename T>
UIR_SIMT_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return uir_simt::unpack<T>(uir_simt_shuffle(kUirShuffle, mask, uir_simt::pack(value), lane, width));
}
template <typename T>
UIR_SIMT_INLINE T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  return uir_simt::unpack<T>(uir_simt_shuffle(kUirShuffleXor, mask, uir_simt::pack(value), lane_mask, width));
}
template <typename T>
UIR_SIMT_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return uir_simt::unpack<T>(uir_simt_shuffle(kUirShuffleUp, mask, uir_simt::pack(value), int(delta), width));
}
template <typename T>
UIR_SIMT_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return uir_simt::unpack<T>(uir_simt_shuffle(kUirShuffleDown, mask, uir_simt::pack(value), int(delta), width));
}

UIR_SIMT_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return uir_simt_vote(kUirBallot, mask, predicate);
}
UIR_SIMT_INLINE int __all_sync(unsigned mask, int predicate) { return int(uir_simt_vote(kUirAll, mask, predicate)); }
UIR_SIMT_INLINE int __any_sync(unsigned mask, int predicate) { return int(uir_simt_vote(kUirAny, mask, predicate)); }
template <typename T>
UIR_SIMT_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  return uir_simt_match_any(mask, uir_simt::pack(value));
}

#define UIR_SIMT_REDUCE(name, kind)                                                \
  UIR_SIMT_INLINE unsigned __reduce_##name##_sync(unsigned mask, unsigned value) { \
    return uir_simt_reduce(kind, 0, mask, value);                                  \
  }
#define UIR_SIMT_REDUCE_SIGNED(name, kind)                               \
  UIR_SIMT_INLINE int __reduce_##name##_sync(unsigned mask, int value) { \
    return int(uir_simt_reduce(kind, 1, mask, uint32_t(value)));         \
  }
UIR_SIMT_REDUCE(add, kUirAdd)
UIR_SIMT_REDUCE_SIGNED(add, kUirAdd)
UIR_SIMT_REDUCE(min, kUirMin)
UIR_SIMT_REDUCE_SIGNED(min, kUirMin)
UIR_SIMT_REDUCE(max, kUirMax)
UIR_SIMT_REDUCE_SIGNED(max, kUirMax)
UIR_SIMT_REDUCE(and, kUirAnd)
UIR_SIMT_REDUCE(or, kUirOr)
UIR_SIMT_REDUCE(xor, kUirXor)
#undef UIR_SIMT_REDUCE
#undef UIR_SIMT_REDUCE_SIGNED

UIR_SIMT_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { uir_simt_syncwarp(mask); }
UIR_SIMT_INLINE void __syncthreads() { uir_simt_syncthreads(); }
UIR_SIMT_INLINE void named_barrier(int id, int threads) { uir_simt_named_barrier(id, threads); }
