// SPDX-License-Identifier: Apache-2.0
// The words of CUDA C++ that a host compiler does not know, and where a thread is.
#pragma once

// C's headers alone: that of libstdc++ brings the special functions, which take longer to read than most texts.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <stdlib.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"

#define UIR_SIMT_INLINE static inline __attribute__((always_inline))

#define __global__ __attribute__((visibility("default"), noinline))
#define __device__
#define __host__
#define __constant__
// All shared memory is the dynamic pool, which the model owns: `extern __shared__ unsigned char smem[]`.
#define __shared__
#define smem uir_simt_pool
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
typedef dim3 uint3;

#define threadIdx (dim3(uir_simt_thread(), 0, 0))
#define blockIdx (dim3(uir_simt_block(), 0, 0))
#define blockDim (dim3(uir_simt_block_size(), 1, 1))
#define gridDim (dim3(uir_simt_grid_size(), 1, 1))
#define warpSize 32

UIR_SIMT_INLINE void __threadfence() {}
UIR_SIMT_INLINE void __threadfence_block() {}
UIR_SIMT_INLINE void __threadfence_system() {}
[[noreturn]] UIR_SIMT_INLINE void __trap() { uir_simt_trap("the kernel calls __trap"); }
