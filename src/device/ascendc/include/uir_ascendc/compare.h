// SPDX-License-Identifier: Apache-2.0
// Comparisons to masks of bits, and selections by them.
#pragma once

#include "vector.h"

namespace uir_ascendc {

template <typename T>
UirVector WithMode(UirVector vector, T mode) {
  vector.mode = static_cast<int32_t>(mode);
  return vector;
}

}  // namespace uir_ascendc

namespace AscendC {

template <typename T, typename U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             uint32_t count, Site at = Site::Here()) {
  UirVector vector =
      uir_ascendc::WithMode(uir_ascendc::Binary("Compare", dst, src0, src1, uir_ascendc::Counted(count)), cmpMode);
  uir_ascendc_compare(&vector, at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             const uint64_t mask[], Given repeatTime, const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::WithMode(
      uir_ascendc::Binary("Compare", dst, src0, src1, uir_ascendc::Bits(mask, repeatTime, isSetMask), repeatParams),
      cmpMode);
  uir_ascendc_compare(&vector, at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             const uint64_t mask, Given repeatTime, const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::WithMode(
      uir_ascendc::Binary("Compare", dst, src0, src1, uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams),
      cmpMode);
  uir_ascendc_compare(&vector, at.line());
}

#define UIR_COMPARE_SCALAR(Name)                                                                                       \
  template <typename T, typename U>                                                                                    \
  void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,                \
            uint32_t count, Site at = Site::Here()) {                                                                  \
    UirVector vector = uir_ascendc::WithMode(                                                                          \
        uir_ascendc::WithScalar(#Name, dst, src0, src1Scalar, uir_ascendc::Counted(count)), cmpMode);                  \
    uir_ascendc_compare(&vector, at.line());                                                                           \
  }                                                                                                                    \
  template <typename T, typename U, bool isSetMask = true>                                                             \
  void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,                \
            const uint64_t mask[], Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {  \
    UirVector vector =                                                                                                 \
        uir_ascendc::WithMode(uir_ascendc::WithScalar(#Name, dst, src0, src1Scalar,                                    \
                                                      uir_ascendc::Bits(mask, repeatTime, isSetMask), repeatParams),   \
                              cmpMode);                                                                                \
    uir_ascendc_compare(&vector, at.line());                                                                           \
  }                                                                                                                    \
  template <typename T, typename U, bool isSetMask = true>                                                             \
  void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,                \
            const uint64_t mask, Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {    \
    UirVector vector =                                                                                                 \
        uir_ascendc::WithMode(uir_ascendc::WithScalar(#Name, dst, src0, src1Scalar,                                    \
                                                      uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams), \
                              cmpMode);                                                                                \
    uir_ascendc_compare(&vector, at.line());                                                                           \
  }
UIR_COMPARE_SCALAR(Compares)
UIR_COMPARE_SCALAR(CompareScalar)
#undef UIR_COMPARE_SCALAR

template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, uint32_t count, Site at = Site::Here()) {
  UirVector vector =
      uir_ascendc::WithMode(uir_ascendc::Binary("Select", dst, src0, src1, uir_ascendc::Counted(count)), selMode);
  uir_ascendc_select(&vector, &selMask.uir_tensor(), at.line());
}
template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
            SELMODE selMode, uint32_t count, Site at = Site::Here()) {
  UirVector vector =
      uir_ascendc::WithMode(uir_ascendc::WithScalar("Select", dst, src0, src1, uir_ascendc::Counted(count)), selMode);
  uir_ascendc_select(&vector, &selMask.uir_tensor(), at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask[], Given repeatTime,
            const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::WithMode(
      uir_ascendc::Binary("Select", dst, src0, src1, uir_ascendc::Bits(mask, repeatTime), repeatParams), selMode);
  uir_ascendc_select(&vector, &selMask.uir_tensor(), at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask, Given repeatTime,
            const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::WithMode(
      uir_ascendc::Binary("Select", dst, src0, src1, uir_ascendc::Masked(mask, repeatTime), repeatParams), selMode);
  uir_ascendc_select(&vector, &selMask.uir_tensor(), at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
            SELMODE selMode, uint64_t mask[], Given repeatTime, const BinaryRepeatParams& repeatParams,
            Site at = Site::Here()) {
  UirVector vector = uir_ascendc::WithScalar("Select", dst, src0, src1, uir_ascendc::Bits(mask, repeatTime));
  vector.mode = static_cast<int32_t>(selMode);
  vector.dst_stride = {repeatParams.dstBlkStride, repeatParams.dstRepStride};
  vector.src_stride[0] = {repeatParams.src0BlkStride, repeatParams.src0RepStride};
  uir_ascendc_select(&vector, &selMask.uir_tensor(), at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
            SELMODE selMode, uint64_t mask, Given repeatTime, const BinaryRepeatParams& repeatParams,
            Site at = Site::Here()) {
  UirVector vector = uir_ascendc::WithScalar("Select", dst, src0, src1, uir_ascendc::Masked(mask, repeatTime));
  vector.mode = static_cast<int32_t>(selMode);
  vector.dst_stride = {repeatParams.dstBlkStride, repeatParams.dstRepStride};
  vector.src_stride[0] = {repeatParams.src0BlkStride, repeatParams.src0RepStride};
  uir_ascendc_select(&vector, &selMask.uir_tensor(), at.line());
}

/*! \brief The mask register that vector functions with isSetMask = false read. */
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow, Site at = Site::Here()) {
  uir_ascendc_set_mask(maskHigh, maskLow, at.line());
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(int32_t len, Site at = Site::Here()) {
  auto n = static_cast<uint64_t>(len);
  if (mode == MaskMode::COUNTER) return uir_ascendc_set_mask(0, n, at.line());
  uint64_t low = n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  uint64_t high = n <= 64 ? 0 : n >= 128 ? ~uint64_t{0} : (uint64_t{1} << (n - 64)) - 1;
  uir_ascendc_set_mask(high, low, at.line());
}
inline void ResetMask(Site at = Site::Here()) { uir_ascendc_set_mask(~uint64_t{0}, ~uint64_t{0}, at.line()); }
inline void SetMaskCount() { uir_ascendc_mask_counts(1); }
inline void SetMaskNorm() { uir_ascendc_mask_counts(0); }
constexpr uint64_t MASK_PLACEHOLDER = 0;

}  // namespace AscendC
