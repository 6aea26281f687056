// SPDX-License-Identifier: Apache-2.0
// Products of four warps, under the names of the emitted text's PTX wrappers.
#pragma once

#include "keywords.h"

template <typename... T>
UIR_SIMT_INLINE void wgmma_fence(T&... operands) {
  uir_simt_wgmma_fence();
  (uir_simt_wgmma_operand(&operands, sizeof(operands)), ...);
}
UIR_SIMT_INLINE void wgmma_commit() { uir_simt_wgmma_commit(); }
template <int GROUPS, typename... T>
UIR_SIMT_INLINE void wgmma_wait(T&... operands) {
  uir_simt_wgmma_wait(GROUPS);
  (uir_simt_wgmma_operand(&operands, sizeof(operands)), ...);
}

template <int CHUNKS>
UIR_SIMT_INLINE uint64_t wgmma_tile(const void* first, int leading, int stride) {
  return uir_simt_wgmma_tile(first, leading, stride, CHUNKS);
}

// 16-bit factors may lie either way in memory, all others only along their rows.
#define UIR_SIMT_WGMMA_EITHER(name, columns, kind)                                     \
  template <int B_ACROSS>                                                              \
  UIR_SIMT_INLINE void name(float* low, float* high, const uint32_t* a, uint64_t b) {  \
    uir_simt_wgmma(kind, columns, 2 * B_ACROSS, low, high, a, 0, b);                   \
  }                                                                                    \
  template <int A_ACROSS, int B_ACROSS>                                                \
  UIR_SIMT_INLINE void name##_tiles(float* low, float* high, uint64_t a, uint64_t b) { \
    uir_simt_wgmma(kind, columns, A_ACROSS + 2 * B_ACROSS, low, high, nullptr, a, b);  \
  }
#define UIR_SIMT_WGMMA_ALONG(name, columns, kind, sum)                             \
  UIR_SIMT_INLINE void name(sum* low, sum* high, const uint32_t* a, uint64_t b) {  \
    uir_simt_wgmma(kind, columns, 0, low, high, a, 0, b);                          \
  }                                                                                \
  UIR_SIMT_INLINE void name##_tiles(sum* low, sum* high, uint64_t a, uint64_t b) { \
    uir_simt_wgmma(kind, columns, 0, low, high, nullptr, a, b);                    \
  }
#define UIR_SIMT_WGMMA(columns)                                                            \
  UIR_SIMT_WGMMA_EITHER(wgmma_m64n##columns##k16_f16, columns, kUirMmaM16N8K16F16)         \
  UIR_SIMT_WGMMA_EITHER(wgmma_m64n##columns##k16_bf16, columns, kUirMmaM16N8K16Bf16)       \
  UIR_SIMT_WGMMA_ALONG(wgmma_m64n##columns##k8_tf32, columns, kUirMmaM16N8K8Tf32, float)   \
  UIR_SIMT_WGMMA_ALONG(wgmma_m64n##columns##k32_s8, columns, kUirMmaM16N8K32S8, int32_t)   \
  UIR_SIMT_WGMMA_ALONG(wgmma_m64n##columns##k32_u8, columns, kUirMmaM16N8K32U8, int32_t)   \
  UIR_SIMT_WGMMA_ALONG(wgmma_m64n##columns##k32_e4m3, columns, kUirMmaM16N8K32E4m3, float) \
  UIR_SIMT_WGMMA_ALONG(wgmma_m64n##columns##k32_e5m2, columns, kUirMmaM16N8K32E5m2, float)
UIR_SIMT_WGMMA(8)
UIR_SIMT_WGMMA(16)
UIR_SIMT_WGMMA(32)
UIR_SIMT_WGMMA(64)
UIR_SIMT_WGMMA(96)
UIR_SIMT_WGMMA(128)
UIR_SIMT_WGMMA(192)
UIR_SIMT_WGMMA(256)
#undef UIR_SIMT_WGMMA
#undef UIR_SIMT_WGMMA_ALONG
#undef UIR_SIMT_WGMMA_EITHER
