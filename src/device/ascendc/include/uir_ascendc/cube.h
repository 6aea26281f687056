// SPDX-License-Identifier: Apache-2.0
// The cube core: copies that lay out fractals, loads of its operands, products, and the way out.
#pragma once

#include "tensor.h"

enum class QuantMode_t {
  NoQuant,
  F322F16,
  F322BF16,
  DEQF16,
  VDEQF16,
  QF322B8_PRE,
  VQF322B8_PRE,
  REQ8,
  VREQ8,
};

namespace AscendC {

struct Nd2NzParams {
  Nd2NzParams() = default;
  Nd2NzParams(const Given ndNumIn, const Given nValueIn, const Given dValueIn, const Given srcNdMatrixStrideIn,
              const Given srcDValueIn, const Given dstNzC0StrideIn, const Given dstNzNStrideIn,
              const Given dstNzMatrixStrideIn)
      : ndNum(ndNumIn),
        nValue(nValueIn),
        dValue(dValueIn),
        srcNdMatrixStride(srcNdMatrixStrideIn),
        srcDValue(srcDValueIn),
        dstNzC0Stride(dstNzC0StrideIn),
        dstNzNStride(dstNzNStrideIn),
        dstNzMatrixStride(dstNzMatrixStrideIn) {}

  Given ndNum = 0;
  Given nValue = 0;
  Given dValue = 0;
  Given srcNdMatrixStride = 0;
  Given srcDValue = 0;
  Given dstNzC0Stride = 0;
  Given dstNzNStride = 0;
  Given dstNzMatrixStride = 0;
};

struct LoadData2DParams {
  LoadData2DParams() = default;
  LoadData2DParams(const Given startIndexIn, const Given repeatTimesIn, const Given srcStrideIn, const Given sidIn,
                   const Given dstGapIn, const bool ifTransposeIn, const Given addrModeIn)
      : startIndex(startIndexIn),
        dstGap(dstGapIn),
        srcStride(srcStrideIn),
        ifTranspose(ifTransposeIn),
        repeatTimes(repeatTimesIn),
        sid(sidIn),
        addrMode(addrModeIn) {}

  Given startIndex = 0;
  Given dstGap = 0;
  Given srcStride = 0;
  bool ifTranspose = false;
  Given repeatTimes = 0;
  Given sid = 0;
  Given addrMode = 0;
};
using LoadData2dParams = LoadData2DParams;

struct LoadData2dTransposeParams {
  LoadData2dTransposeParams() = default;
  LoadData2dTransposeParams(const Given startIndexIn, const Given repeatTimesIn, const Given srcStrideIn,
                            const Given dstGapIn, const Given dstfracGapIn, const Given addrModeIn = 0)
      : startIndex(startIndexIn),
        repeatTimes(repeatTimesIn),
        srcStride(srcStrideIn),
        dstGap(dstGapIn),
        dstFracGap(dstfracGapIn),
        addrMode(addrModeIn) {}

  Given startIndex = 0;
  Given repeatTimes = 0;
  Given srcStride = 0;
  Given dstGap = 0;
  Given dstFracGap = 0;
  Given addrMode = 0;
};

struct MmadParams {
  MmadParams() = default;
  MmadParams(const Given mIn, const Given nIn, const Given kIn, const bool isBiasIn, const int32_t fmOffsetIn,
             const bool enSsparseIn, const bool enWinogradAIn, const bool enWinogradBIn)
      : m(mIn),
        n(nIn),
        k(kIn),
        isBias(isBiasIn),
        fmOffset(fmOffsetIn),
        enSsparse(enSsparseIn),
        enWinogradA(enWinogradAIn),
        enWinogradB(enWinogradBIn) {}
  MmadParams(const Given mIn, const Given nIn, const Given kIn, const Given unitFlagIn, const bool cmatrixSourceIn,
             const bool cmatrixInitValIn)
      : m(mIn),
        n(nIn),
        k(kIn),
        unitFlag(unitFlagIn),
        cmatrixSource(cmatrixSourceIn),
        cmatrixInitVal(cmatrixInitValIn) {}

  Given m = 0;
  Given n = 0;
  Given k = 0;
  bool isBias = false;
  int32_t fmOffset = 0;
  bool enSsparse = false;
  bool enWinogradA = false;
  bool enWinogradB = false;
  Given unitFlag = 0;
  bool kDirectionAlign = false;
  bool cmatrixSource = false;
  bool cmatrixInitVal = true;
};

enum class CO2Layout : uint8_t { NZ, ROW_MAJOR, COLUMN_MAJOR };

struct FixpipeConfig {
  CO2Layout format;
  constexpr FixpipeConfig(CO2Layout format_) : format(format_) {}
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

struct FixpipeParamsV220 {
  FixpipeParamsV220() = default;
  FixpipeParamsV220(const Given nSizeIn, const Given mSizeIn, const Given srcStrideIn, const Given dstStrideIn,
                    const bool reluEnIn)
      : nSize(nSizeIn), mSize(mSizeIn), srcStride(srcStrideIn), dstStride(dstStrideIn), reluEn(reluEnIn) {}
  FixpipeParamsV220(const Given nSizeIn, const Given mSizeIn, const Given srcStrideIn, const Given dstStrideIn,
                    const bool reluEnIn, const QuantMode_t quantPreIn, const int64_t deqScalarIn, const Given ndNumIn,
                    const Given srcNdStrideIn, const Given dstNdStrideIn, const Given unitFlagIn,
                    const bool isChannelSplitIn = false)
      : nSize(nSizeIn),
        mSize(mSizeIn),
        srcStride(srcStrideIn),
        dstStride(dstStrideIn),
        quantPre(quantPreIn),
        deqScalar(static_cast<uint64_t>(deqScalarIn)),
        ndNum(ndNumIn),
        srcNdStride(srcNdStrideIn),
        dstNdStride(dstNdStrideIn),
        reluEn(reluEnIn),
        unitFlag(unitFlagIn),
        isChannelSplit(isChannelSplitIn) {}

  Given nSize = 0;
  Given mSize = 0;
  Given srcStride = 0;
  Given dstStride = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
  Given ndNum = 1;
  Given srcNdStride = 0;
  Given dstNdStride = 0;
  bool reluEn = false;
  Given unitFlag = 0;
  bool isChannelSplit = false;
};

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& intriParams,
              Site at = Site::Here()) {
  UirNd2Nz copy{dst.uir_tensor(),         src.uir_tensor(),
                intriParams.ndNum,        intriParams.nValue,
                intriParams.dValue,       intriParams.srcNdMatrixStride,
                intriParams.srcDValue,    intriParams.dstNzC0Stride,
                intriParams.dstNzNStride, intriParams.dstNzMatrixStride};
  uir_ascendc_nd2nz(&copy, at.line());
}

/*! \brief LoadData of fractals, from L1 or from global memory. */
inline void uir_load_2d(const UirTensor& dst, const UirTensor& src, const LoadData2DParams& params, Site at) {
  UirLoad load{dst,
               src,
               params.startIndex,
               params.repeatTimes,
               params.srcStride,
               params.dstGap,
               0,
               params.ifTranspose,
               0,
               static_cast<int32_t>(params.addrMode)};
  uir_ascendc_load(&load, at.line());
}
template <typename T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& loadDataParams,
              Site at = Site::Here()) {
  uir_load_2d(dst.uir_tensor(), src.uir_tensor(), loadDataParams, at);
}
template <typename T>
void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const LoadData2DParams& loadDataParams,
              Site at = Site::Here()) {
  uir_load_2d(dst.uir_tensor(), src.uir_tensor(), loadDataParams, at);
}
template <typename T>
void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const LoadData2dTransposeParams& loadDataParams, Site at = Site::Here()) {
  UirLoad load{dst.uir_tensor(),
               src.uir_tensor(),
               loadDataParams.startIndex,
               loadDataParams.repeatTimes,
               loadDataParams.srcStride,
               loadDataParams.dstGap,
               loadDataParams.dstFracGap,
               1,
               1,
               static_cast<int32_t>(loadDataParams.addrMode)};
  uir_ascendc_load(&load, at.line());
}

template <typename T, typename U, typename S>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
          const MmadParams& mmadParams, Site at = Site::Here()) {
  UirMmad mmad{dst.uir_tensor(),
               fm.uir_tensor(),
               filter.uir_tensor(),
               {},
               mmadParams.m,
               mmadParams.n,
               mmadParams.k,
               mmadParams.unitFlag,
               mmadParams.cmatrixInitVal && !mmadParams.isBias,
               mmadParams.cmatrixSource,
               mmadParams.kDirectionAlign};
  uir_ascendc_mmad(&mmad, at.line());
}
template <typename T, typename U, typename S, typename V>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter, const LocalTensor<V>& bias,
          const MmadParams& mmadParams, Site at = Site::Here()) {
  UirMmad mmad{dst.uir_tensor(),
               fm.uir_tensor(),
               filter.uir_tensor(),
               bias.uir_tensor(),
               mmadParams.m,
               mmadParams.n,
               mmadParams.k,
               mmadParams.unitFlag,
               0,
               1,
               mmadParams.kDirectionAlign};
  uir_ascendc_mmad(&mmad, at.line());
}

template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& intriParams,
             Site at = Site::Here()) {
  UirFixpipe fixpipe{dst.uir_tensor(),
                     src.uir_tensor(),
                     intriParams.nSize,
                     intriParams.mSize,
                     intriParams.srcStride,
                     intriParams.dstStride,
                     intriParams.ndNum,
                     intriParams.srcNdStride,
                     intriParams.dstNdStride,
                     intriParams.unitFlag,
                     config.format == CO2Layout::ROW_MAJOR,
                     static_cast<int32_t>(intriParams.quantPre),
                     intriParams.reluEn,
                     intriParams.isChannelSplit};
  uir_ascendc_fixpipe(&fixpipe, at.line());
}

}  // namespace AscendC
