// SPDX-License-Identifier: Apache-2.0
// What a compiled kernel asks of the model's library: one call for each instruction.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UIR_BANG_EXPORT __attribute__((visibility("default")))

/*! \brief Memories, in the order of their names in findings. */
enum UirBangMemory { kBangGdram, kBangNram, kBangWram, kBangSram, kBangLdram, kBangMemories };
/*! \brief Queues of a core; the scalar unit issues to the others. */
enum UirBangPipe { kBangScalar, kBangIo, kBangMove, kBangCompute, kBangPipes };
enum UirBangType {
  kBangHalf,
  kBangBfloat16,
  kBangFloat,
  kBangInt8,
  kBangUint8,
  kBangInt16,
  kBangUint16,
  kBangInt32,
  kBangUint32,
  kBangTypes
};
/*! \brief Values that the device gives a kernel. */
enum UirBangRegister {
  kBangTaskId,
  kBangTaskIdX,
  kBangTaskIdY,
  kBangTaskIdZ,
  kBangTaskDim,
  kBangTaskDimX,
  kBangTaskDimY,
  kBangTaskDimZ,
  kBangCoreId,
  kBangCoreDim,
  kBangClusterId,
  kBangClusterDim
};
/*! \brief What a core waits for. */
enum UirBangSync {
  kBangSync,
  kBangSyncIo,
  kBangSyncMove,
  kBangSyncCompute,
  kBangSyncIoMoveCompute,
  kBangSyncCluster,
  kBangSyncAll,
  kBangSyncAllIpu,
  kBangSyncAllMpu
};

/*! \brief A copy. Segments are one more than the text's numbers; strides are in bytes. */
typedef struct {
  const char* name;
  void* dst;
  const void* src;
  int64_t bytes;
  uint32_t dst_memory;
  uint32_t src_memory;
  /*! \brief 0: returns when it is done. */
  int32_t asynchronous;
  /*! \brief 1: one segment; 2: strided; 3: strided in two dimensions. */
  int32_t dims;
  int64_t dst_stride[2];
  int64_t dst_segments[2];
  int64_t src_stride[2];
  int64_t src_segments[2];
  /*! \brief Cluster of the target where both are SRAM; -1: none was given. */
  int64_t cluster;
} UirBangCopy;

/*! \brief An operand in memory, or a scalar one, whose value is in `real` and `integer`. */
typedef struct {
  const void* address;
  uint32_t type;
  int32_t scalar;
  double real;
  int64_t integer;
} UirBangOperand;

/*! \brief A call of a `__bang_` function: its operands, the target first, and its integers, in the text's order. */
typedef struct {
  /*! \brief Without `__bang_`. */
  const char* name;
  int32_t operands;
  int32_t numbers;
  UirBangOperand operand[5];
  int64_t number[12];
} UirBangCall;

#ifdef __cplusplus
extern "C" {
#endif

UIR_BANG_EXPORT void uir_bang_copy(const UirBangCopy* copy, int line);
UIR_BANG_EXPORT void uir_bang_call(const UirBangCall* call, int line);
/*! \brief A call that also gives its result (`__bang_sum`). */
UIR_BANG_EXPORT double uir_bang_value(const UirBangCall* call, int line);
/*! \brief `orders` 0: takes its time and meets others, but orders nothing. */
UIR_BANG_EXPORT void uir_bang_sync(int kind, int orders, int line);
UIR_BANG_EXPORT int64_t uir_bang_register(int which);
UIR_BANG_EXPORT int uir_bang_memory_of(const void* address);
/*! \brief A load or store of scalar code, before it happens; `site` is an address of the code. */
UIR_BANG_EXPORT void uir_bang_access(const void* address, size_t bytes, int write, void* site);
UIR_BANG_EXPORT float uir_bang_float_of(uint16_t bits, int type);
UIR_BANG_EXPORT uint16_t uir_bang_bits_of(float value, int type);
/*! \brief `name<<<dim, type, queue>>>(...)`: runs the kernel; `args` are its parameters as 8-byte integers. */
UIR_BANG_EXPORT void uir_bang_enqueue(const char* name, void* kernel, const uint32_t* dim, int type, void* queue,
                                      const uint64_t* args, size_t count, int line);

#ifdef __cplusplus
}
#endif
