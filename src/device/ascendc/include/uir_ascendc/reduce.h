// SPDX-License-Identifier: Apache-2.0
// Reductions of repeats, blocks, pairs and whole tensors, by the names of CANN 8 and by those of CANN 9.1.
#pragma once

#include "vector.h"

namespace uir_ascendc {

template <typename T, typename U>
void Reduce(const char* name, const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<U>& src,
            const UirLanes& lanes, int64_t dst_stride, int64_t block, int64_t repeat, AscendC::ReduceOrder order,
            int line) {
  UirReduce reduce{};
  reduce.name = name;
  reduce.dst = dst.uir_tensor();
  reduce.src = src.uir_tensor();
  reduce.lanes = lanes;
  reduce.dst_repeat_stride = dst_stride;
  reduce.src_stride = {block, repeat};
  reduce.order = static_cast<int32_t>(order);
  uir_ascendc_reduce(&reduce, line);
}

/*! \brief The name by which the model knows, and reports, a function that takes its kind as a template argument. */
template <AscendC::ReduceType kind>
const char* OfKind(const char* sum, const char* max, const char* min) {
  static_assert(
      kind == AscendC::ReduceType::SUM || kind == AscendC::ReduceType::MAX || kind == AscendC::ReduceType::MIN,
      "SUM, MAX or MIN");
  return kind == AscendC::ReduceType::SUM ? sum : kind == AscendC::ReduceType::MAX ? max : min;
}

template <typename T>
void ReduceAll(const char* name, const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
               const AscendC::LocalTensor<T>& work, const UirLanes& lanes, int64_t repeat_stride, bool index,
               int line) {
  UirReduce reduce{};
  reduce.name = name;
  reduce.dst = dst.uir_tensor();
  reduce.src = src.uir_tensor();
  reduce.work = work.uir_tensor();
  reduce.lanes = lanes;
  reduce.src_stride = {1, repeat_stride};
  reduce.index = index;
  uir_ascendc_reduce(&reduce, line);
}

}  // namespace uir_ascendc

namespace AscendC {

// One result for each repeat.
template <typename T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                    const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                    const int32_t srcRepStride, Site at = Site::Here()) {
  uir_ascendc::Reduce("WholeReduceSum", dst, src, uir_ascendc::Bits(mask, repeatTime, isSetMask), dstRepStride,
                      srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at.line());
}
template <typename T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask, const int32_t repeatTime,
                    const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                    Site at = Site::Here()) {
  uir_ascendc::Reduce("WholeReduceSum", dst, src,
                      uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime, isSetMask), dstRepStride,
                      srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at.line());
}

#define UIR_WHOLE(Name)                                                                                              \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], const int32_t repeatTime,   \
            const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                      \
            ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Site at = Site::Here()) {                            \
    uir_ascendc::Reduce(#Name, dst, src, uir_ascendc::Bits(mask, repeatTime, isSetMask), dstRepStride, srcBlkStride, \
                        srcRepStride, order, at.line());                                                             \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask, const int32_t repeatTime,      \
            const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                      \
            ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Site at = Site::Here()) {                            \
    uir_ascendc::Reduce(#Name, dst, src, uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime, isSetMask),    \
                        dstRepStride, srcBlkStride, srcRepStride, order, at.line());                                 \
  }
UIR_WHOLE(WholeReduceMax)
UIR_WHOLE(WholeReduceMin)
#undef UIR_WHOLE

// One result for each block of 32 bytes, or each pair; here the repeats come before the mask.
#define UIR_PARTS(Name)                                                                                              \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime, const uint64_t mask[],   \
            const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                      \
            Site at = Site::Here()) {                                                                                \
    uir_ascendc::Reduce(#Name, dst, src, uir_ascendc::Bits(mask, repeatTime, isSetMask), dstRepStride, srcBlkStride, \
                        srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at.line());                                     \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime, const int32_t mask,      \
            const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                      \
            Site at = Site::Here()) {                                                                                \
    uir_ascendc::Reduce(#Name, dst, src, uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime, isSetMask),    \
                        dstRepStride, srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at.line());         \
  }
UIR_PARTS(BlockReduceSum)
UIR_PARTS(BlockReduceMax)
UIR_PARTS(BlockReduceMin)
UIR_PARTS(PairReduceSum)
#undef UIR_PARTS

// The same functions as CANN 9.1 names them: the kind is a template argument, and the mask always before the repeats.
template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>
void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint64_t mask[], const int32_t repeatTime,
                  const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Site at = Site::Here()) {
  uir_ascendc::Reduce(uir_ascendc::OfKind<reduceType>("WholeReduceSum", "WholeReduceMax", "WholeReduceMin"), dst, src,
                      uir_ascendc::Bits(mask, repeatTime, isSetMask), dstRepStride, srcBlkStride, srcRepStride, order,
                      at.line());
}
template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>
void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, const int32_t mask, const int32_t repeatTime,
                  const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Site at = Site::Here()) {
  uir_ascendc::Reduce(uir_ascendc::OfKind<reduceType>("WholeReduceSum", "WholeReduceMax", "WholeReduceMin"), dst, src,
                      uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime, isSetMask), dstRepStride,
                      srcBlkStride, srcRepStride, order, at.line());
}
template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>
void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint64_t mask[],
                     const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                     const int32_t srcRepStride, Site at = Site::Here()) {
  uir_ascendc::Reduce(uir_ascendc::OfKind<reduceType>("BlockReduceSum", "BlockReduceMax", "BlockReduceMin"), dst, src,
                      uir_ascendc::Bits(mask, repeatTime, isSetMask), dstRepStride, srcBlkStride, srcRepStride,
                      ReduceOrder::ORDER_ONLY_VALUE, at.line());
}
template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>
void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, const int32_t mask, const int32_t repeatTime,
                     const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                     Site at = Site::Here()) {
  uir_ascendc::Reduce(uir_ascendc::OfKind<reduceType>("BlockReduceSum", "BlockReduceMax", "BlockReduceMin"), dst, src,
                      uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime, isSetMask), dstRepStride,
                      srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at.line());
}

// One result for all.
template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const int32_t count, Site at = Site::Here()) {
  uir_ascendc::ReduceAll("ReduceSum", dst, src, sharedTmpBuffer, uir_ascendc::Counted(count), 8, false, at.line());
}
template <typename T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const int32_t mask, const int32_t repeatTime, const int32_t srcRepStride, Site at = Site::Here()) {
  uir_ascendc::ReduceAll("ReduceSum", dst, src, sharedTmpBuffer,
                         uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime), srcRepStride, false, at.line());
}

#define UIR_ALL(Name)                                                                                              \
  template <typename T>                                                                                            \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,           \
            const int32_t count, bool calIndex = 0, Site at = Site::Here()) {                                      \
    uir_ascendc::ReduceAll(#Name, dst, src, sharedTmpBuffer, uir_ascendc::Counted(count), 8, calIndex, at.line()); \
  }                                                                                                                \
  template <typename T>                                                                                            \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,           \
            const int32_t mask, const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = 0,           \
            Site at = Site::Here()) {                                                                              \
    uir_ascendc::ReduceAll(#Name, dst, src, sharedTmpBuffer,                                                       \
                           uir_ascendc::Masked(static_cast<uint64_t>(mask), repeatTime), srcRepStride, calIndex,   \
                           at.line());                                                                             \
  }
UIR_ALL(ReduceMax)
UIR_ALL(ReduceMin)
#undef UIR_ALL

}  // namespace AscendC
