// SPDX-License-Identifier: Apache-2.0
// Copies between memories, where a pointer points, and waits.
#pragma once

#include "types.h"

namespace uir_bang {

/*! \brief The memories of a direction. */
struct Ends {
  uint32_t src;
  uint32_t dst;
};
UIR_BANG_UNSEEN constexpr Ends EndsOf(int direction) {
  constexpr Ends kEnds[] = {
      {kBangGdram, kBangNram},  {kBangNram, kBangGdram},  {kBangLdram, kBangNram},  {kBangNram, kBangLdram},
      {kBangGdram, kBangWram},  {kBangWram, kBangGdram},  {kBangLdram, kBangWram},  {kBangWram, kBangLdram},
      {kBangNram, kBangNram},   {kBangNram, kBangWram},   {kBangWram, kBangNram},   {kBangGdram, kBangSram},
      {kBangSram, kBangGdram},  {kBangLdram, kBangSram},  {kBangSram, kBangLdram},  {kBangSram, kBangNram},
      {kBangNram, kBangSram},   {kBangSram, kBangWram},   {kBangWram, kBangSram},   {kBangGdram, kBangGdram},
      {kBangGdram, kBangLdram}, {kBangLdram, kBangGdram}, {kBangLdram, kBangLdram}, {kBangSram, kBangSram}};
  return kEnds[direction];
}

UIR_BANG_FUNCTION void Copy(const char* name, void* dst, const void* src, int size, int dir, int asynchronous, int dims,
                            const int64_t (&dst_steps)[4], const int64_t (&src_steps)[4], int64_t cluster, Site at) {
  Ends ends = EndsOf(dir);
  UirBangCopy copy{name,
                   dst,
                   src,
                   size,
                   ends.dst,
                   ends.src,
                   asynchronous,
                   dims,
                   {dst_steps[0], dst_steps[2]},
                   {dst_steps[1] + 1, dst_steps[3] + 1},
                   {src_steps[0], src_steps[2]},
                   {src_steps[1] + 1, src_steps[3] + 1},
                   cluster};
  uir_bang_copy(&copy, at.line());
}

}  // namespace uir_bang

#define UIR_BANG_COPIES(NAME, ASYNC)                                                                                 \
  UIR_BANG_FUNCTION void NAME(void* dst, const void* src, int size, mluMemcpyDirection_t dir,                        \
                              uir_bang::Site at = uir_bang::Site::Here()) {                                          \
    uir_bang::Copy(#NAME, dst, src, size, dir, ASYNC, 1, {0, 0, 0, 0}, {0, 0, 0, 0}, -1, at);                        \
  }                                                                                                                  \
  UIR_BANG_FUNCTION void NAME(void* dst, const void* src, int size, mluMemcpyDirection_t dir, int id_dst_cluster,    \
                              uir_bang::Site at = uir_bang::Site::Here()) {                                          \
    uir_bang::Copy(#NAME, dst, src, size, dir, ASYNC, 1, {0, 0, 0, 0}, {0, 0, 0, 0}, id_dst_cluster, at);            \
  }                                                                                                                  \
  UIR_BANG_FUNCTION void NAME(void* dst, const void* src, int size, mluMemcpyDirection_t dir, int dst_stride,        \
                              int src_stride, int segnum, uir_bang::Site at = uir_bang::Site::Here()) {              \
    uir_bang::Copy(#NAME, dst, src, size, dir, ASYNC, 2, {dst_stride, segnum, 0, 0}, {src_stride, segnum, 0, 0}, -1, \
                   at);                                                                                              \
  }                                                                                                                  \
  UIR_BANG_FUNCTION void NAME(void* dst, const void* src, int size, mluMemcpyDirection_t dir, int dst_stride,        \
                              int src_stride, int segnum, int id_dst_cluster,                                        \
                              uir_bang::Site at = uir_bang::Site::Here()) {                                          \
    uir_bang::Copy(#NAME, dst, src, size, dir, ASYNC, 2, {dst_stride, segnum, 0, 0}, {src_stride, segnum, 0, 0},     \
                   id_dst_cluster, at);                                                                              \
  }                                                                                                                  \
  UIR_BANG_FUNCTION void NAME(void* dst, const void* src, int size, mluMemcpyDirection_t dir, int dst_stride0,       \
                              int dst_segnum1, int dst_stride1, int dst_segnum2, int src_stride0, int src_segnum1,   \
                              int src_stride1, int src_segnum2, uir_bang::Site at = uir_bang::Site::Here()) {        \
    uir_bang::Copy(#NAME, dst, src, size, dir, ASYNC, 3, {dst_stride0, dst_segnum1, dst_stride1, dst_segnum2},       \
                   {src_stride0, src_segnum1, src_stride1, src_segnum2}, -1, at);                                    \
  }                                                                                                                  \
  UIR_BANG_FUNCTION void NAME(void* dst, const void* src, int size, mluMemcpyDirection_t dir, int dst_stride0,       \
                              int dst_segnum1, int dst_stride1, int dst_segnum2, int src_stride0, int src_segnum1,   \
                              int src_stride1, int src_segnum2, int id_dst_cluster,                                  \
                              uir_bang::Site at = uir_bang::Site::Here()) {                                          \
    uir_bang::Copy(#NAME, dst, src, size, dir, ASYNC, 3, {dst_stride0, dst_segnum1, dst_stride1, dst_segnum2},       \
                   {src_stride0, src_segnum1, src_stride1, src_segnum2}, id_dst_cluster, at);                        \
  }

UIR_BANG_COPIES(__memcpy, 0)
UIR_BANG_COPIES(__memcpy_async, 1)
#undef UIR_BANG_COPIES

UIR_BANG_FUNCTION bool __is_nram(const void* address) { return uir_bang_memory_of(address) == kBangNram; }
UIR_BANG_FUNCTION bool __is_wram(const void* address) { return uir_bang_memory_of(address) == kBangWram; }
UIR_BANG_FUNCTION bool __is_sram(const void* address) { return uir_bang_memory_of(address) == kBangSram; }
UIR_BANG_FUNCTION bool __is_mpu() { return uir_bang_register(kBangCoreId) == 0x80; }
UIR_BANG_FUNCTION bool __is_ipu() { return uir_bang_register(kBangCoreId) != 0x80; }

// Each wait also in a form that takes its time and meets others, but orders nothing: for tests of what is needed.
#define UIR_BANG_SYNC(NAME, TAKE, KIND)                                                                          \
  UIR_BANG_FUNCTION void NAME(uir_bang::Site at = uir_bang::Site::Here()) { uir_bang_sync(KIND, 1, at.line()); } \
  namespace uir_bang {                                                                                           \
  UIR_BANG_FUNCTION void TAKE(Site at = Site::Here()) { uir_bang_sync(KIND, 0, at.line()); }                     \
  }
UIR_BANG_SYNC(__sync, take_sync, kBangSync)
UIR_BANG_SYNC(__sync_io, take_sync_io, kBangSyncIo)
UIR_BANG_SYNC(__sync_move, take_sync_move, kBangSyncMove)
UIR_BANG_SYNC(__sync_compute, take_sync_compute, kBangSyncCompute)
UIR_BANG_SYNC(__sync_io_move_compute, take_sync_io_move_compute, kBangSyncIoMoveCompute)
UIR_BANG_SYNC(__sync_cluster, take_sync_cluster, kBangSyncCluster)
UIR_BANG_SYNC(__sync_all, take_sync_all, kBangSyncAll)
UIR_BANG_SYNC(__sync_all_ipu, take_sync_all_ipu, kBangSyncAllIpu)
UIR_BANG_SYNC(__sync_all_mpu, take_sync_all_mpu, kBangSyncAllMpu)
#undef UIR_BANG_SYNC
