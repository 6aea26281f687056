// SPDX-License-Identifier: Apache-2.0
// Reductions, choices by masks, other layouts, products.
#pragma once

#include "vector.h"

#define UIR_BANG_POOL(NAME, T)                                                                                        \
  UIR_BANG_FUNCTION void __bang_##NAME(T* dst, T* src, int channel, int height, int width, int kernel_height,         \
                                       int kernel_width, int stride_width, int stride_height, UIR_BANG_SITE) {        \
    (UIR_BANG_CALL(NAME) << dst << src << channel << height << width << kernel_height << kernel_width << stride_width \
                         << stride_height)                                                                            \
        .Run(at);                                                                                                     \
  }                                                                                                                   \
  UIR_BANG_FUNCTION void __bang_##NAME(T* dst, T* src, int channel, int height, int width, int kernel_height,         \
                                       int kernel_width, UIR_BANG_SITE) {                                             \
    (UIR_BANG_CALL(NAME) << dst << src << channel << height << width << kernel_height << kernel_width).Run(at);       \
  }
UIR_BANG_HBF(UIR_BANG_POOL, sumpool)
UIR_BANG_HBF(UIR_BANG_POOL, avgpool)
UIR_BANG_HBF(UIR_BANG_POOL, maxpool)
UIR_BANG_HBF(UIR_BANG_POOL, minpool)

UIR_BANG_HF(UIR_BANG_UNARY, reduce_sum)
UIR_BANG_HBF(UIR_BANG_UNARY, argmax)
UIR_BANG_HBF(UIR_BANG_UNARY, argmin)
UIR_BANG_HBF(UIR_BANG_UNARY, max)
UIR_BANG_HBF(UIR_BANG_UNARY, min)
UIR_BANG_FUNCTION float __bang_sum(float* src, int n, UIR_BANG_SITE) {
  return static_cast<float>((UIR_BANG_CALL(sum) << src << n).Value(at));
}
UIR_BANG_FUNCTION half __bang_sum(half* src, int n, UIR_BANG_SITE) {
  return half((UIR_BANG_CALL(sum) << src << n).Value(at));
}

#define UIR_BANG_COUNT(NAME, T)                                                           \
  UIR_BANG_FUNCTION void __bang_##NAME(unsigned int* dst, T* src, int n, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(NAME) << dst << src << n).Run(at);                                     \
  }
UIR_BANG_HBF(UIR_BANG_COUNT, count)
UIR_BANG_HBF(UIR_BANG_BINARY, maskmove)
#define UIR_BANG_MASKED(NAME, T)                                                           \
  UIR_BANG_FUNCTION void __bang_##NAME(T* dst, T* src, void* mask, int n, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(NAME) << dst << src << static_cast<unsigned char*>(mask) << n).Run(at); \
  }
UIR_BANG_HF(UIR_BANG_MASKED, maskmove_bitindex)
UIR_BANG_HF(UIR_BANG_BINARY, collect)
#define UIR_BANG_FILTER(NAME, T)                                                                   \
  UIR_BANG_FUNCTION unsigned int __bang_##NAME(T* dst, T* src, T* index, int n, UIR_BANG_SITE) {   \
    return static_cast<unsigned int>((UIR_BANG_CALL(NAME) << dst << src << index << n).Value(at)); \
  }
UIR_BANG_HF(UIR_BANG_FILTER, filter)
UIR_BANG_HBF(UIR_BANG_BINARY, lt_bitindex)
UIR_BANG_HBF(UIR_BANG_BINARY, le_bitindex)
UIR_BANG_HBF(UIR_BANG_BINARY, gt_bitindex)
UIR_BANG_HBF(UIR_BANG_BINARY, ge_bitindex)
UIR_BANG_HBF(UIR_BANG_BINARY, eq_bitindex)
UIR_BANG_HBF(UIR_BANG_BINARY, ne_bitindex)

UIR_BANG_FUNCTION void __bang_move(void* dst, const void* src, int size, UIR_BANG_SITE) {
  (UIR_BANG_CALL(move) << static_cast<int8_t*>(dst) << const_cast<int8_t*>(static_cast<const int8_t*>(src)) << size)
      .Run(at);
}

#define UIR_BANG_TRANSPOSE(T)                                                                     \
  UIR_BANG_FUNCTION void __bang_transpose(T* dst, T* src, int height, int width, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(transpose) << dst << src << height << width).Run(at);                          \
  }
#define UIR_BANG_RESHAPE(T)                                                                                 \
  UIR_BANG_FUNCTION void __bang_reshape_filter(T* dst, T* src, int n, int h, int w, int c, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(reshape_filter) << dst << src << n << h << w << c).Run(at);                              \
  }
#define UIR_BANG_PLACED(FORM) \
  FORM(half)                  \
  FORM(float) FORM(char) FORM(int8_t) FORM(unsigned char) FORM(short) FORM(unsigned short) FORM(int) FORM(unsigned int)
UIR_BANG_PLACED(UIR_BANG_TRANSPOSE)
UIR_BANG_PLACED(UIR_BANG_RESHAPE)

#define UIR_BANG_MATMUL(TO, T)                                                                           \
  UIR_BANG_FUNCTION void __bang_matmul(TO* dst, T* left, T* right, int m, int k, int n, UIR_BANG_SITE) { \
    (UIR_BANG_CALL(matmul) << dst << left << right << m << k << n).Run(at);                              \
  }
UIR_BANG_MATMUL(float, float)
UIR_BANG_MATMUL(float, half)
UIR_BANG_MATMUL(half, half)
UIR_BANG_MATMUL(float, bfloat16_t)

#undef UIR_BANG_MATMUL
#undef UIR_BANG_PLACED
#undef UIR_BANG_RESHAPE
#undef UIR_BANG_TRANSPOSE
#undef UIR_BANG_FILTER
#undef UIR_BANG_MASKED
#undef UIR_BANG_COUNT
#undef UIR_BANG_POOL
