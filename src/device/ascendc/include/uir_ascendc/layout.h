// SPDX-License-Identifier: Apache-2.0
// Vector functions that move elements: copies, broadcasts, gathers, transposes, indices.
#pragma once

#include "vector.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

struct CopyRepeatParams {
  CopyRepeatParams() = default;
  CopyRepeatParams(const Given dstStrideIn, const Given srcStrideIn, Given dstRepeatSizeIn, Given srcRepeatSizeIn)
      : dstStride(dstStrideIn),
        srcStride(srcStrideIn),
        dstRepeatSize(dstRepeatSizeIn),
        srcRepeatSize(srcRepeatSizeIn) {}

  Given dstStride = 0;
  Given srcStride = 0;
  Given dstRepeatSize = 8;
  Given srcRepeatSize = 8;
};

struct BrcbRepeatParams {
  BrcbRepeatParams() = default;
  BrcbRepeatParams(const Given dstBlkStrideIn, const Given dstRepStrideIn)
      : dstBlkStride(dstBlkStrideIn), dstRepStride(dstRepStrideIn) {}

  Given dstRepStride = 8;
  Given dstBlkStride = 1;
};

struct TransDataTo5HDParams {
  TransDataTo5HDParams() = default;
  TransDataTo5HDParams(const bool dstHighHalfIn, const bool srcHighHalfIn, const Given repeatTimesIn,
                       const Given dstRepStrideIn, const Given srcRepStrideIn)
      : dstHighHalf(dstHighHalfIn),
        srcHighHalf(srcHighHalfIn),
        repeatTimes(repeatTimesIn),
        dstRepStride(dstRepStrideIn),
        srcRepStride(srcRepStrideIn) {}

  bool dstHighHalf = false;
  bool srcHighHalf = false;
  Given repeatTimes = 1;
  Given dstRepStride = 0;
  Given srcRepStride = 0;
};

// --- copies within the UB, with a mask ---
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], const Given repeatTime,
          const CopyRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::Unary("Copy", dst, src, uir_ascendc::Bits(mask, repeatTime, isSetMask));
  vector.dst_stride = {repeatParams.dstStride, repeatParams.dstRepeatSize};
  vector.src_stride[0] = {repeatParams.srcStride, repeatParams.srcRepeatSize};
  uir_ascendc_vector(&vector, at.line());
}
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask, const Given repeatTime,
          const CopyRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::Unary("Copy", dst, src, uir_ascendc::Masked(mask, repeatTime, isSetMask));
  vector.dst_stride = {repeatParams.dstStride, repeatParams.dstRepeatSize};
  vector.src_stride[0] = {repeatParams.srcStride, repeatParams.srcRepeatSize};
  uir_ascendc_vector(&vector, at.line());
}

// --- broadcasts ---
template <typename T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Given repeatTime,
          const BrcbRepeatParams& repeatParams, Site at = Site::Here()) {
  UirBrcb brcb{dst.uir_tensor(), src.uir_tensor(), repeatTime, {repeatParams.dstBlkStride, repeatParams.dstRepStride}};
  uir_ascendc_brcb(&brcb, at.line());
}

/*! \brief A shape of one or two axes from one in which the axis has the extent 1. */
template <typename T, int32_t dim, int32_t axis>
void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], LocalTensor<uint8_t>& sharedTmpBuffer, Site at = Site::Here()) {
  static_assert((dim == 1 || dim == 2) && axis >= 0 && axis < dim, "shapes have one or two axes");
  UirBroadcast broadcast{dst.uir_tensor(), src.uir_tensor(), sharedTmpBuffer.uir_tensor(), dim, axis, {1, 1}, {1, 1}};
  for (int i = 0; i < dim; ++i) {
    broadcast.dst_shape[2 - dim + i] = dstShape[i];
    broadcast.src_shape[2 - dim + i] = srcShape[i];
  }
  uir_ascendc_broadcast(&broadcast, at.line());
}

// --- gathers ---
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            const uint32_t srcBaseOffset, const uint32_t count, Site at = Site::Here()) {
  UirGather gather{
      dst.uir_tensor(), src.uir_tensor(), srcOffset.uir_tensor(), srcBaseOffset, uir_ascendc::Counted(count), 8};
  uir_ascendc_gather(&gather, at.line());
}
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            const uint32_t srcBaseOffset, const uint64_t mask, const Given repeatTime, const Given dstRepStride,
            Site at = Site::Here()) {
  UirGather gather{
      dst.uir_tensor(), src.uir_tensor(), srcOffset.uir_tensor(), srcBaseOffset, uir_ascendc::Masked(mask, repeatTime),
      dstRepStride};
  uir_ascendc_gather(&gather, at.line());
}
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            const uint32_t srcBaseOffset, const uint64_t mask[], const Given repeatTime, const Given dstRepStride,
            Site at = Site::Here()) {
  UirGather gather{
      dst.uir_tensor(), src.uir_tensor(), srcOffset.uir_tensor(), srcBaseOffset, uir_ascendc::Bits(mask, repeatTime),
      dstRepStride};
  uir_ascendc_gather(&gather, at.line());
}

// --- transposes ---
template <typename T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, Site at = Site::Here()) {
  uir_ascendc_transpose(&dst.uir_tensor(), &src.uir_tensor(), at.line());
}
template <typename T>
void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& nchwconvParams, Site at = Site::Here()) {
  UirTransData trans{};
  for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
    trans.dst[i] = dstList[i].uir_tensor();
    trans.src[i] = srcList[i].uir_tensor();
  }
  trans.dst_high = nchwconvParams.dstHighHalf;
  trans.src_high = nchwconvParams.srcHighHalf;
  trans.repeat = nchwconvParams.repeatTimes;
  trans.dst_repeat_stride = nchwconvParams.dstRepStride;
  trans.src_repeat_stride = nchwconvParams.srcRepStride;
  uir_ascendc_trans_data(&trans, at.line());
}
/*! \brief The same by addresses in the UB, which is all that bounds them then. */
template <typename T>
void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE], uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& nchwconvParams, Site at = Site::Here()) {
  UirTransData trans{};
  for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
    constexpr uint64_t whole = 192 * 1024;
    trans.dst[i] = {dstList[i], whole - dstList[i], kUirUb, uir_ascendc::TypeOf<T>::value};
    trans.src[i] = {srcList[i], whole - srcList[i], kUirUb, uir_ascendc::TypeOf<T>::value};
  }
  trans.dst_high = nchwconvParams.dstHighHalf;
  trans.src_high = nchwconvParams.srcHighHalf;
  trans.repeat = nchwconvParams.repeatTimes;
  trans.dst_repeat_stride = nchwconvParams.dstRepStride;
  trans.src_repeat_stride = nchwconvParams.srcRepStride;
  uir_ascendc_trans_data(&trans, at.line());
}

}  // namespace AscendC
