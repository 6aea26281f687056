// SPDX-License-Identifier: Apache-2.0
// What the headers that kernels see ask of the model's library: one call for each class of instructions.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UIR_ASCENDC_ABI __attribute__((visibility("default")))

/*! \brief Memories; those of a core are addressed from 0. */
enum UirMemory { kUirGm, kUirUb, kUirL1, kUirL0a, kUirL0b, kUirL0c, kUirBias, kUirFixbuf, kUirMemories };

/*! \brief Pipes of a core. */
enum UirPipe { kUirS, kUirV, kUirM, kUirMte1, kUirMte2, kUirMte3, kUirFix, kUirAll, kUirPipes = kUirAll };

/*! \brief Types of elements. */
enum UirType {
  kUirHalf,
  kUirBfloat16,
  kUirFloat,
  kUirInt8,
  kUirUint8,
  kUirInt16,
  kUirUint16,
  kUirInt32,
  kUirUint32,
  kUirInt64,
  kUirUint64,
  kUirDouble,
  kUirInt4,
  kUirTypes
};

/*! \brief A tensor: where it begins and how many bytes of it there are. */
typedef struct {
  uint64_t address;
  uint64_t bytes;
  uint32_t memory;
  uint32_t type;
} UirTensor;

/*! \brief Which elements of its operands a vector instruction works on. */
enum UirForm {
  kUirCount,    // the first `count`
  kUirMasked,   // the first `mask[0]` of each repeat
  kUirBits,     // those whose bit is set in `mask`, of each repeat
  kUirRegister  // as the mask register says, which SetVectorMask wrote
};
typedef struct {
  uint32_t form;
  int64_t count;
  uint64_t mask[2];
  int64_t repeat;
} UirLanes;

/*! \brief Distances in blocks of 32 bytes between the blocks of a repeat, and between repeats. */
typedef struct {
  int64_t block;
  int64_t repeat;
} UirStride;

/*! \brief A scalar operand, in the type of its tensor. */
typedef union {
  double real;
  int64_t integer;
} UirScalar;

/*! \brief Element by element: dst = op(src0[, src1][, scalar]). */
typedef struct {
  const char* name;
  UirTensor dst;
  UirTensor src[2];
  int32_t sources;
  int32_t has_scalar;
  UirScalar scalar;
  UirLanes lanes;
  UirStride dst_stride;
  UirStride src_stride[2];
  /*! \brief What else the function takes: a rounding mode, a comparison, how a selection reads its mask. */
  int32_t mode;
  /*! \brief A tensor for the function's own use; bytes is 0 where it takes none. */
  UirTensor work;
} UirVector;
UIR_ASCENDC_ABI void uir_ascendc_vector(const UirVector* instruction, int line);

/*! \brief One bit for each element: src0 `mode` src1 or the scalar. */
UIR_ASCENDC_ABI void uir_ascendc_compare(const UirVector* instruction, int line);
/*! \brief dst = bit of `select` ? src0 : src1 or the scalar. */
UIR_ASCENDC_ABI void uir_ascendc_select(const UirVector* instruction, const UirTensor* select, int line);

/*! \brief Reductions of each repeat ("Whole..."), of each block ("Block..."), of pairs, of all ("Reduce..."). */
typedef struct {
  const char* name;
  UirTensor dst;
  UirTensor src;
  UirTensor work;
  UirLanes lanes;
  int64_t dst_repeat_stride;
  UirStride src_stride;
  int32_t order;
  int32_t index;
} UirReduce;
UIR_ASCENDC_ABI void uir_ascendc_reduce(const UirReduce* instruction, int line);

/*! \brief Elements of `src` at byte offsets. */
typedef struct {
  UirTensor dst;
  UirTensor src;
  UirTensor offsets;
  uint32_t base;
  UirLanes lanes;
  int64_t dst_repeat_stride;
} UirGather;
UIR_ASCENDC_ABI void uir_ascendc_gather(const UirGather* instruction, int line);

/*! \brief Each of eight elements in a block of its own. */
typedef struct {
  UirTensor dst;
  UirTensor src;
  int64_t repeat;
  UirStride dst_stride;
} UirBrcb;
UIR_ASCENDC_ABI void uir_ascendc_brcb(const UirBrcb* instruction, int line);

/*! \brief A shape broadcast along one axis. */
typedef struct {
  UirTensor dst;
  UirTensor src;
  UirTensor work;
  int32_t dim;
  int32_t axis;
  uint32_t dst_shape[2];
  uint32_t src_shape[2];
} UirBroadcast;
UIR_ASCENDC_ABI void uir_ascendc_broadcast(const UirBroadcast* instruction, int line);

/*! \brief Functions of several instructions: dst = f(src0) by means of the work tensor. */
UIR_ASCENDC_ABI void uir_ascendc_function(const UirVector* instruction, int line);

/*! \brief first, first + 1, ... */

/*! \brief Transpose of 16 x 16 elements of two bytes, and of lists of 16 rows. */
UIR_ASCENDC_ABI void uir_ascendc_transpose(const UirTensor* dst, const UirTensor* src, int line);
typedef struct {
  UirTensor dst[16];
  UirTensor src[16];
  int32_t dst_high;
  int32_t src_high;
  int64_t repeat;
  int64_t dst_repeat_stride;
  int64_t src_repeat_stride;
} UirTransData;
UIR_ASCENDC_ABI void uir_ascendc_trans_data(const UirTransData* instruction, int line);

/*! \brief Copies. Distances and lengths of each side are in bytes. */
typedef struct {
  const char* name;
  UirTensor dst;
  UirTensor src;
  int64_t rows;
  int64_t row_bytes;
  int64_t src_pitch;
  int64_t dst_pitch;
  /*! \brief Bytes at both ends of a row in the core's memory, and their value; pad is 0 where nothing is said. */
  int64_t left;
  int64_t right;
  int32_t pad;
  uint64_t pad_value;
  /*! \brief 1: any bytes (DataCopyPad); 0: blocks of 32 bytes. */
  int32_t any_bytes;
  /*! \brief What the text gave, for limits: number, length, gaps; -1 where it does not apply. */
  int64_t block_count;
  int64_t block_length;
  int64_t src_gap;
  int64_t dst_gap;
} UirCopy;
UIR_ASCENDC_ABI void uir_ascendc_copy(const UirCopy* instruction, int line);

/*! \brief Matrices of global memory to fractals of the L1 buffer; numbers as Nd2NzParams has them. */
typedef struct {
  UirTensor dst;
  UirTensor src;
  int64_t matrices;
  int64_t rows;
  int64_t columns;
  int64_t src_matrix;
  int64_t src_row;
  int64_t dst_block;
  int64_t dst_row;
  int64_t dst_matrix;
} UirNd2Nz;
UIR_ASCENDC_ABI void uir_ascendc_nd2nz(const UirNd2Nz* copy, int line);

/*! \brief Fractals of 512 bytes to the operands of the cube; with `square`, square matrices of several fractals. */
typedef struct {
  UirTensor dst;
  UirTensor src;
  int64_t start;
  int64_t repeat;
  int64_t src_stride;
  int64_t dst_gap;
  int64_t dst_fractal_gap;
  int32_t transpose;
  int32_t square;
  int32_t backwards;
} UirLoad;
UIR_ASCENDC_ABI void uir_ascendc_load(const UirLoad* load, int line);

/*! \brief c = [c or bias +] a b. */
typedef struct {
  UirTensor c;
  UirTensor a;
  UirTensor b;
  UirTensor bias;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t unit_flag;
  int32_t from_zero;
  int32_t from_bias;
  int32_t align_k;
} UirMmad;
UIR_ASCENDC_ABI void uir_ascendc_mmad(const UirMmad* mmad, int line);

/*! \brief A product to global memory; numbers as FixpipeParamsV220 has them. */
typedef struct {
  UirTensor dst;
  UirTensor src;
  int64_t n;
  int64_t m;
  int64_t src_stride;
  int64_t dst_stride;
  int64_t matrices;
  int64_t src_matrix;
  int64_t dst_matrix;
  int64_t unit_flag;
  int32_t rows;
  int32_t quant;
  int32_t relu;
  int32_t split;
} UirFixpipe;
UIR_ASCENDC_ABI void uir_ascendc_fixpipe(const UirFixpipe* fixpipe, int line);

/*! \brief One element between a tensor and the scalar unit. */
UIR_ASCENDC_ABI uint64_t uir_ascendc_get(const UirTensor* tensor, uint64_t offset, int line);
UIR_ASCENDC_ABI void uir_ascendc_set(const UirTensor* tensor, uint64_t offset, uint64_t value, int line);

/*! \brief The mask register and how it is read. */
UIR_ASCENDC_ABI void uir_ascendc_set_mask(uint64_t high, uint64_t low, int line);
UIR_ASCENDC_ABI void uir_ascendc_mask_counts(int counts);

/*! \brief Flags between pipes, barriers within one, and between cores. */
UIR_ASCENDC_ABI void uir_ascendc_set_flag(int from, int to, int id, int line);
UIR_ASCENDC_ABI void uir_ascendc_wait_flag(int from, int to, int id, int line);
UIR_ASCENDC_ABI void uir_ascendc_take_flag(int from, int to, int id, int line);
UIR_ASCENDC_ABI void uir_ascendc_pipe_barrier(int pipe, int line);
UIR_ASCENDC_ABI int uir_ascendc_event(int from, int to, int take, int line);
UIR_ASCENDC_ABI void uir_ascendc_release_event(int from, int to, int id, int line);
UIR_ASCENDC_ABI void uir_ascendc_sync_all(int vector_only, int line);
UIR_ASCENDC_ABI void uir_ascendc_cross_set(int mode, int pipe, int id, int line);
UIR_ASCENDC_ABI void uir_ascendc_cross_wait(int pipe, int id, int line);

/*! \brief Buffers: the address of a new one, queues of them, and the end of a pipe object. */
UIR_ASCENDC_ABI void uir_ascendc_pipe_begin(int line);
UIR_ASCENDC_ABI void uir_ascendc_pipe_end(int line);
UIR_ASCENDC_ABI uint64_t uir_ascendc_buffer(int memory, uint64_t bytes, int line);
UIR_ASCENDC_ABI int uir_ascendc_queue(int memory, int from, int to, int depth, uint64_t count, uint64_t bytes,
                                      int line);
/*! \brief What is done with a queue; the tensor is given or taken. */
enum UirQueueStep { kUirAlloc, kUirEnque, kUirDeque, kUirFree };
UIR_ASCENDC_ABI void uir_ascendc_queue_step(int queue, int step, UirTensor* tensor, int line);
UIR_ASCENDC_ABI int uir_ascendc_queue_count(int queue, int step);

/*! \brief Where the kernel runs. */
UIR_ASCENDC_ABI int64_t uir_ascendc_block_index(void);
UIR_ASCENDC_ABI int64_t uir_ascendc_block_count(void);
UIR_ASCENDC_ABI int64_t uir_ascendc_sub_block(void);
UIR_ASCENDC_ABI int64_t uir_ascendc_sub_block_count(void);
UIR_ASCENDC_ABI int uir_ascendc_is_vector_core(void);
/*! \brief What the text says of the kernel: as `core` of a launch. */
UIR_ASCENDC_ABI void uir_ascendc_task_type(const char* core, int line);
UIR_ASCENDC_ABI void uir_ascendc_fail(const char* kind, const char* what, int line);

/*! \brief Numbers of two bytes, for scalars of the text. */
UIR_ASCENDC_ABI float uir_ascendc_float_of(uint16_t bits, int type);
UIR_ASCENDC_ABI uint16_t uir_ascendc_bits_of(float value, int type);

#ifdef __cplusplus
}
#endif
