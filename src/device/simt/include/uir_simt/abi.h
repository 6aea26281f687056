// SPDX-License-Identifier: Apache-2.0
// What compiled kernels call in the host model. Every function is called by one lane; `site` of a finding is
// where it returns to, so the functions that wrap these are always inlined.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UIR_SIMT_EXPORT __attribute__((visibility("default")))

extern "C" {

UIR_SIMT_EXPORT extern unsigned char uir_simt_pool[];

// Places. A lane keeps its place, so repeated calls may be joined.
UIR_SIMT_EXPORT unsigned uir_simt_thread(void) __attribute__((const));
UIR_SIMT_EXPORT unsigned uir_simt_block(void) __attribute__((const));
UIR_SIMT_EXPORT unsigned uir_simt_block_size(void) __attribute__((const));
UIR_SIMT_EXPORT unsigned uir_simt_grid_size(void) __attribute__((const));
// The NaN that tells registers that nothing wrote (unwritten.h); the same all through a launch.
UIR_SIMT_EXPORT unsigned uir_simt_unwritten(void) __attribute__((const));

// Exchange between the lanes of a warp. Values travel as 8 bytes.
enum UirSimtShuffle { kUirShuffle, kUirShuffleXor, kUirShuffleUp, kUirShuffleDown };
UIR_SIMT_EXPORT uint64_t uir_simt_shuffle(int kind, unsigned mask, uint64_t value, int argument, int width);
enum UirSimtVote { kUirBallot, kUirAll, kUirAny, kUirActive };
UIR_SIMT_EXPORT unsigned uir_simt_vote(int kind, unsigned mask, int predicate);
enum UirSimtReduce { kUirAdd, kUirMin, kUirMax, kUirAnd, kUirOr, kUirXor };
UIR_SIMT_EXPORT uint32_t uir_simt_reduce(int kind, int is_signed, unsigned mask, uint32_t value);
UIR_SIMT_EXPORT uint32_t uir_simt_match_any(unsigned mask, uint64_t value);

// Barriers.
UIR_SIMT_EXPORT void uir_simt_syncwarp(unsigned mask);
UIR_SIMT_EXPORT void uir_simt_syncthreads(void);
UIR_SIMT_EXPORT void uir_simt_named_barrier(int id, int threads);
UIR_SIMT_EXPORT void uir_simt_grid_sync(void);

// Memory. `uir_simt_shared_range` registers a part of the pool; `uir_simt_bad_index` reports an index of registers.
UIR_SIMT_EXPORT void uir_simt_shared_range(const void* at, int64_t bytes, int64_t alignment);
UIR_SIMT_EXPORT void uir_simt_bad_index(const char* space, int64_t index, int64_t size) __attribute__((noreturn));
UIR_SIMT_EXPORT void uir_simt_trap(const char* what) __attribute__((noreturn));
UIR_SIMT_EXPORT void uir_simt_atomic(const void* at, int bytes);

// Asynchronous copies.
UIR_SIMT_EXPORT void uir_simt_cp_async(void* shared, const void* global, int bytes, int valid);
UIR_SIMT_EXPORT void uir_simt_cp_async_commit(void);
UIR_SIMT_EXPORT void uir_simt_cp_async_wait(int groups);
UIR_SIMT_EXPORT void uir_simt_mbarrier_init(uint64_t* bar, int count);
UIR_SIMT_EXPORT void uir_simt_mbarrier_arrive(uint64_t* bar, int tx_bytes);
UIR_SIMT_EXPORT void uir_simt_mbarrier_wait(uint64_t* bar, int parity);
UIR_SIMT_EXPORT void uir_simt_bulk_copy(void* shared, const void* global, int bytes, uint64_t* bar);
UIR_SIMT_EXPORT void uir_simt_fence_async(void);
UIR_SIMT_EXPORT void uir_simt_fence_mbarrier_init(void);

// Tensor cores: the registers of one lane; `d` is both accumulator and result.
enum UirSimtMma {
  kUirMmaM16N8K16F16,
  kUirMmaM16N8K16Bf16,
  kUirMmaM16N8K8Tf32,
  kUirMmaM16N8K32S8,
  kUirMmaM16N8K32U8,
  kUirMmaM16N8K32E4m3,
  kUirMmaM16N8K32E5m2,
  kUirMmaM8N8K4F64,
};
UIR_SIMT_EXPORT void uir_simt_mma(int kind, void* d, const void* a, const void* b);
UIR_SIMT_EXPORT void uir_simt_ldmatrix(int matrices, int transposed, uint32_t* r, const void* row);

// Products of four warps (wgmma). `kind` is one of UirSimtMma and says the factors' type; a comes from registers, or
// from memory where `a` is null. Of `across`, bit 0 says that a, bit 1 that b lies with its contracted side across
// rows. A fence and a wait have the registers of sums as operands, so that no compiler moves them across.
UIR_SIMT_EXPORT uint64_t uir_simt_wgmma_tile(const void* first, int leading, int stride, int chunks);
UIR_SIMT_EXPORT void uir_simt_wgmma(int kind, int columns, int across, void* low, void* high, const uint32_t* a,
                                    uint64_t a_tile, uint64_t b_tile);
UIR_SIMT_EXPORT void uir_simt_wgmma_operand(const void* first, size_t bytes);
UIR_SIMT_EXPORT void uir_simt_wgmma_fence(void);
UIR_SIMT_EXPORT void uir_simt_wgmma_commit(void);
UIR_SIMT_EXPORT void uir_simt_wgmma_wait(int groups);

}  // extern "C"
