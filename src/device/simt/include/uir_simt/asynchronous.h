// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies and barrier objects, under the names of the emitted text's PTX wrappers.
#pragma once

#include "keywords.h"

#define UIR_SIMT_CP_ASYNC(bytes)                                                                     \
  UIR_SIMT_INLINE void cp_async_##bytes(void* shared, const void* global) {                          \
    uir_simt_cp_async(shared, global, bytes, bytes);                                                 \
  }                                                                                                  \
  UIR_SIMT_INLINE void cp_async_##bytes##_zfill(void* shared, const void* global, int valid_bytes) { \
    uir_simt_cp_async(shared, global, bytes, valid_bytes);                                           \
  }
UIR_SIMT_CP_ASYNC(4)
UIR_SIMT_CP_ASYNC(8)
UIR_SIMT_CP_ASYNC(16)
#undef UIR_SIMT_CP_ASYNC

UIR_SIMT_INLINE void cp_async_commit() { uir_simt_cp_async_commit(); }
template <int N>
UIR_SIMT_INLINE void cp_async_wait() {
  uir_simt_cp_async_wait(N);
}

UIR_SIMT_INLINE void mbarrier_init(uint64_t* bar, int count) { uir_simt_mbarrier_init(bar, count); }
UIR_SIMT_INLINE void mbarrier_expect_tx(uint64_t* bar, int bytes) { uir_simt_mbarrier_arrive(bar, bytes); }
UIR_SIMT_INLINE void mbarrier_arrive(uint64_t* bar) { uir_simt_mbarrier_arrive(bar, 0); }
UIR_SIMT_INLINE void mbarrier_wait(uint64_t* bar, int parity) { uir_simt_mbarrier_wait(bar, parity); }
UIR_SIMT_INLINE void bulk_copy(void* shared, const void* global, int bytes, uint64_t* bar) {
  uir_simt_bulk_copy(shared, global, bytes, bar);
}
UIR_SIMT_INLINE void fence_async() { uir_simt_fence_async(); }
UIR_SIMT_INLINE void fence_mbarrier_init() { uir_simt_fence_mbarrier_init(); }
