// SPDX-License-Identifier: Apache-2.0
// DataCopy and DataCopyPad between global memory and a core, and within a core.
#pragma once

#include "tensor.h"

namespace AscendC {

struct DataCopyParams {
  DataCopyParams() = default;
  DataCopyParams(const Given count, const Given len, const Given srcStrideIn, const Given dstStrideIn)
      : blockCount(count), blockLen(len), srcGap(srcStrideIn), dstGap(dstStrideIn) {}

  Given blockCount = 1;
  Given blockLen = 0;
  union {
    Given srcGap = 0;
    Given srcStride;
  };
  union {
    Given dstGap = 0;
    Given dstStride;
  };
};

struct DataCopyExtParams {
  DataCopyExtParams() = default;
  DataCopyExtParams(const Given count, const Given len, const Given srcStrideIn, const Given dstStrideIn,
                    const Given rsvIn)
      : blockCount(count), blockLen(len), srcStride(srcStrideIn), dstStride(dstStrideIn), rsv(rsvIn) {}

  Given blockCount = 1;
  Given blockLen = 0;
  Given srcStride = 0;
  Given dstStride = 0;
  Given rsv = 0;
};

struct DataCopyPadParams {
  DataCopyPadParams() = default;
  DataCopyPadParams(const bool isPadValue, const Given leftPadValue, const Given rightPadValue, const uint64_t padValue)
      : isPad(isPadValue), leftPadding(leftPadValue), rightPadding(rightPadValue), paddingValue(padValue) {}

  bool isPad = false;
  Given leftPadding = 0;
  Given rightPadding = 0;
  uint64_t paddingValue = 0;
};

template <typename T>
struct DataCopyPadExtParams {
  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(const bool isPadValue, const Given leftPadValue, const Given rightPadValue, T padValue)
      : isPad(isPadValue), leftPadding(leftPadValue), rightPadding(rightPadValue), paddingValue(padValue) {}

  bool isPad = false;
  Given leftPadding = 0;
  Given rightPadding = 0;
  T paddingValue = 0;
};

}  // namespace AscendC

namespace uir_ascendc {

template <typename Dst, typename Src>
UirCopy CopyOf(const char* name, const Dst& dst, const Src& src) {
  UirCopy copy{};
  copy.name = name;
  copy.dst = dst.uir_tensor();
  copy.src = src.uir_tensor();
  copy.rows = 1;
  copy.block_count = copy.block_length = copy.src_gap = copy.dst_gap = -1;
  return copy;
}

template <typename Dst, typename Src>
void CopyWhole(const Dst& dst, const Src& src, uint64_t bytes, int line) {
  UirCopy copy = CopyOf("DataCopy", dst, src);
  copy.row_bytes = copy.src_pitch = copy.dst_pitch = static_cast<int64_t>(bytes);
  uir_ascendc_copy(&copy, line);
}

template <typename Dst, typename Src>
void CopyBlocks(const Dst& dst, const Src& src, const AscendC::DataCopyParams& params, int line) {
  UirCopy copy = CopyOf("DataCopy", dst, src);
  copy.block_count = params.blockCount;
  copy.block_length = params.blockLen;
  copy.src_gap = params.srcGap;
  copy.dst_gap = params.dstGap;
  copy.rows = params.blockCount;
  copy.row_bytes = params.blockLen * 32;
  copy.src_pitch = copy.row_bytes + params.srcGap * 32;
  copy.dst_pitch = copy.row_bytes + params.dstGap * 32;
  uir_ascendc_copy(&copy, line);
}

/*! \brief Rows of any number of bytes; gaps are in bytes in global memory, in blocks of 32 bytes in the core. */
template <typename Dst, typename Src, typename Params>
UirCopy PadOf(const Dst& dst, const Src& src, const Params& params, int64_t left, int64_t right) {
  UirCopy copy = CopyOf("DataCopyPad", dst, src);
  copy.any_bytes = 1;
  copy.block_count = params.blockCount;
  copy.block_length = params.blockLen;
  copy.src_gap = params.srcStride;
  copy.dst_gap = params.dstStride;
  copy.rows = params.blockCount;
  copy.row_bytes = params.blockLen;
  copy.left = left;
  copy.right = right;
  int64_t padded = (left + copy.row_bytes + right + 31) / 32 * 32;
  bool loads = copy.src.memory == kUirGm;
  copy.src_pitch = loads ? copy.row_bytes + copy.src_gap : padded + copy.src_gap * 32;
  copy.dst_pitch = loads ? padded + copy.dst_gap * 32 : copy.row_bytes + copy.dst_gap;
  return copy;
}

template <typename T, typename Params>
void PadIn(const AscendC::LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src, const Params& params, bool pad,
           int64_t left, int64_t right, uint64_t value, int line) {
  int64_t size = sizeof(T);
  UirCopy copy = PadOf(dst, src, params, left * size, right * size);
  copy.pad = pad;
  copy.pad_value = value;
  uir_ascendc_copy(&copy, line);
}

}  // namespace uir_ascendc

namespace AscendC {

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count, Site at = Site::Here()) {
  uir_ascendc::CopyWhole(dst, src, uint64_t{count} * sizeof(T), at.line());
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count, Site at = Site::Here()) {
  uir_ascendc::CopyWhole(dst, src, uint64_t{count} * sizeof(T), at.line());
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count, Site at = Site::Here()) {
  uir_ascendc::CopyWhole(dst, src, uint64_t{count} * sizeof(T), at.line());
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& repeatParams,
              Site at = Site::Here()) {
  uir_ascendc::CopyBlocks(dst, src, repeatParams, at.line());
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& repeatParams,
              Site at = Site::Here()) {
  uir_ascendc::CopyBlocks(dst, src, repeatParams, at.line());
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& repeatParams,
              Site at = Site::Here()) {
  uir_ascendc::CopyBlocks(dst, src, repeatParams, at.line());
}

template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& dataCopyParams,
                 const DataCopyPadExtParams<T>& padParams, Site at = Site::Here()) {
  uint64_t value = 0;
  __builtin_memcpy(&value, &padParams.paddingValue, sizeof(T));
  uir_ascendc::PadIn(dst, src, dataCopyParams, padParams.isPad, padParams.leftPadding, padParams.rightPadding, value,
                     at.line());
}
template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& dataCopyParams,
                 const DataCopyPadParams& padParams, Site at = Site::Here()) {
  uir_ascendc::PadIn(dst, src, dataCopyParams, padParams.isPad, padParams.leftPadding, padParams.rightPadding,
                     padParams.paddingValue, at.line());
}
template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& dataCopyParams,
                 Site at = Site::Here()) {
  UirCopy copy = uir_ascendc::PadOf(dst, src, dataCopyParams, 0, 0);
  uir_ascendc_copy(&copy, at.line());
}
template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& dataCopyParams,
                 Site at = Site::Here()) {
  UirCopy copy = uir_ascendc::PadOf(dst, src, dataCopyParams, 0, 0);
  uir_ascendc_copy(&copy, at.line());
}

}  // namespace AscendC
