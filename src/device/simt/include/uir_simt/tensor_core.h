// SPDX-License-Identifier: Apache-2.0
// ldmatrix and mma, under the names of the emitted text's PTX wrappers.
#pragma once

#include "keywords.h"
#include "narrow.h"

#define UIR_SIMT_LDMATRIX(name, count, transposed)          \
  UIR_SIMT_INLINE void name(uint32_t* r, const void* row) { \
    uint32_t loaded[count];                                 \
    uir_simt_ldmatrix(count, transposed, loaded, row);      \
    for (int i = 0; i < count; ++i) r[i] = loaded[i];       \
  }
UIR_SIMT_LDMATRIX(ldmatrix_x1, 1, 0)
UIR_SIMT_LDMATRIX(ldmatrix_x2, 2, 0)
UIR_SIMT_LDMATRIX(ldmatrix_x4, 4, 0)
UIR_SIMT_LDMATRIX(ldmatrix_x1_trans, 1, 1)
UIR_SIMT_LDMATRIX(ldmatrix_x2_trans, 2, 1)
UIR_SIMT_LDMATRIX(ldmatrix_x4_trans, 4, 1)
#undef UIR_SIMT_LDMATRIX

// low: rows 0 to 7 of the accumulator, high: rows 8 to 15, of two neighbouring columns each, STEP registers apart.
#define UIR_SIMT_MMA(name, kind, sum)                                                    \
  template <int STEP = 1>                                                                \
  UIR_SIMT_INLINE void name(sum* low, sum* high, const uint32_t* a, const uint32_t* b) { \
    sum d[4] = {low[0], low[STEP], high[0], high[STEP]};                                 \
    uint32_t a_[4] = {a[0], a[1], a[2], a[3]}, b_[2] = {b[0], b[1]};                     \
    uir_simt_mma(kind, d, a_, b_);                                                       \
    low[0] = d[0], low[STEP] = d[1], high[0] = d[2], high[STEP] = d[3];                  \
  }
UIR_SIMT_MMA(mma_m16n8k16_f16, kUirMmaM16N8K16F16, float)
UIR_SIMT_MMA(mma_m16n8k16_bf16, kUirMmaM16N8K16Bf16, float)
UIR_SIMT_MMA(mma_m16n8k8_tf32, kUirMmaM16N8K8Tf32, float)
UIR_SIMT_MMA(mma_m16n8k32_s8, kUirMmaM16N8K32S8, int32_t)
UIR_SIMT_MMA(mma_m16n8k32_u8, kUirMmaM16N8K32U8, int32_t)
UIR_SIMT_MMA(mma_m16n8k32_e4m3, kUirMmaM16N8K32E4m3, float)
UIR_SIMT_MMA(mma_m16n8k32_e5m2, kUirMmaM16N8K32E5m2, float)
#undef UIR_SIMT_MMA

UIR_SIMT_INLINE void mma_m8n8k4_f64(double* d, double a, double b) {
  double d_[2] = {d[0], d[1]};
  uir_simt_mma(kUirMmaM8N8K4F64, d_, &a, &b);
  d[0] = d_[0], d[1] = d_[1];
}

/*! \brief Round to tf32, halves away from zero: the low 13 bits become 0. */
UIR_SIMT_INLINE uint32_t to_tf32(float x) {
  uint32_t bits = uir_simt::bits_of(x);
  if ((bits & 0x7f800000) == 0x7f800000) return bits & 0xffffe000;
  return (bits + 0x1000) & 0xffffe000;
}
