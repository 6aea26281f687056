// SPDX-License-Identifier: Apache-2.0
// Vector functions element by element: arithmetic, casts, comparisons, fills.
#pragma once

#include "tensor.h"

namespace AscendC {

struct UnaryRepeatParams {
  UnaryRepeatParams() = default;
  UnaryRepeatParams(const Given dstBlkStrideIn, const Given srcBlkStrideIn, const Given dstRepStrideIn,
                    const Given srcRepStrideIn)
      : dstBlkStride(dstBlkStrideIn),
        srcBlkStride(srcBlkStrideIn),
        dstRepStride(dstRepStrideIn),
        srcRepStride(srcRepStrideIn) {}

  Given dstBlkStride = 1;
  Given srcBlkStride = 1;
  Given dstRepStride = 8;
  Given srcRepStride = 8;
};

struct BinaryRepeatParams {
  BinaryRepeatParams() = default;
  BinaryRepeatParams(const Given dstBlkStrideIn, const Given src0BlkStrideIn, const Given src1BlkStrideIn,
                     const Given dstRepStrideIn, const Given src0RepStrideIn, const Given src1RepStrideIn)
      : dstBlkStride(dstBlkStrideIn),
        src0BlkStride(src0BlkStrideIn),
        src1BlkStride(src1BlkStrideIn),
        dstRepStride(dstRepStrideIn),
        src0RepStride(src0RepStrideIn),
        src1RepStride(src1RepStrideIn) {}

  Given dstBlkStride = 1;
  Given src0BlkStride = 1;
  Given src1BlkStride = 1;
  Given dstRepStride = 8;
  Given src0RepStride = 8;
  Given src1RepStride = 8;
};

}  // namespace AscendC

namespace uir_ascendc {

/*! \brief Elements of the strided forms: the mask of each repeat, and how many there are. */
inline UirLanes Counted(int64_t count) { return {kUirCount, count, {0, 0}, 1}; }
inline UirLanes Masked(uint64_t mask, int64_t repeat, bool set = true) {
  return {set ? uint32_t{kUirMasked} : uint32_t{kUirRegister}, 0, {mask, 0}, repeat};
}
inline UirLanes Bits(const uint64_t* mask, int64_t repeat, bool set = true) {
  if (!set) return {kUirRegister, 0, {0, 0}, repeat};
  return {kUirBits, 0, {mask[0], mask[1]}, repeat};
}

inline UirVector VectorOf(const char* name, const UirLanes& lanes) {
  UirVector vector{};
  vector.name = name;
  vector.lanes = lanes;
  vector.dst_stride = vector.src_stride[0] = vector.src_stride[1] = {1, 8};
  return vector;
}

template <typename Dst, typename Src>
UirVector Unary(const char* name, const Dst& dst, const Src& src, const UirLanes& lanes,
                const AscendC::UnaryRepeatParams& params = {}) {
  UirVector vector = VectorOf(name, lanes);
  vector.dst = dst.uir_tensor();
  vector.src[0] = src.uir_tensor();
  vector.sources = 1;
  vector.dst_stride = {params.dstBlkStride, params.dstRepStride};
  vector.src_stride[0] = {params.srcBlkStride, params.srcRepStride};
  return vector;
}

template <typename Dst, typename Src0, typename Src1>
UirVector Binary(const char* name, const Dst& dst, const Src0& src0, const Src1& src1, const UirLanes& lanes,
                 const AscendC::BinaryRepeatParams& params = {}) {
  UirVector vector = VectorOf(name, lanes);
  vector.dst = dst.uir_tensor();
  vector.src[0] = src0.uir_tensor();
  vector.src[1] = src1.uir_tensor();
  vector.sources = 2;
  vector.dst_stride = {params.dstBlkStride, params.dstRepStride};
  vector.src_stride[0] = {params.src0BlkStride, params.src0RepStride};
  vector.src_stride[1] = {params.src1BlkStride, params.src1RepStride};
  return vector;
}

template <typename Dst, typename Src, typename S>
UirVector WithScalar(const char* name, const Dst& dst, const Src& src, const S& scalar, const UirLanes& lanes,
                     const AscendC::UnaryRepeatParams& params = {}) {
  UirVector vector = Unary(name, dst, src, lanes, params);
  vector.has_scalar = 1;
  vector.scalar = ScalarOf(scalar);
  return vector;
}

inline void Run(const UirVector& vector, int line) { uir_ascendc_vector(&vector, line); }

}  // namespace uir_ascendc

namespace AscendC {

#define UIR_UNARY(Name)                                                                                                \
  template <typename T, bool isSetMask = true>                                                                         \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[], const Given repeatTime,             \
            const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {                                           \
    uir_ascendc::Run(                                                                                                  \
        uir_ascendc::Unary(#Name, dst, src, uir_ascendc::Bits(mask, repeatTime, isSetMask), repeatParams), at.line()); \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, const Given repeatTime,               \
            const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {                                           \
    uir_ascendc::Run(                                                                                                  \
        uir_ascendc::Unary(#Name, dst, src, uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams),           \
        at.line());                                                                                                    \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count, Site at = Site::Here()) {      \
    uir_ascendc::Run(uir_ascendc::Unary(#Name, dst, src, uir_ascendc::Counted(count)), at.line());                     \
  }
UIR_UNARY(Relu)
UIR_UNARY(Exp)
UIR_UNARY(Ln)
UIR_UNARY(Abs)
UIR_UNARY(Reciprocal)
UIR_UNARY(Rsqrt)
UIR_UNARY(Sqrt)
UIR_UNARY(Not)
#undef UIR_UNARY

#define UIR_BINARY(Name)                                                                                             \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask[],      \
            const Given repeatTime, const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {                \
    uir_ascendc::Run(                                                                                                \
        uir_ascendc::Binary(#Name, dst, src0, src1, uir_ascendc::Bits(mask, repeatTime, isSetMask), repeatParams),   \
        at.line());                                                                                                  \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask,        \
            const Given repeatTime, const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {                \
    uir_ascendc::Run(                                                                                                \
        uir_ascendc::Binary(#Name, dst, src0, src1, uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams), \
        at.line());                                                                                                  \
  }                                                                                                                  \
  template <typename T>                                                                                              \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const int32_t& count, \
            Site at = Site::Here()) {                                                                                \
    uir_ascendc::Run(uir_ascendc::Binary(#Name, dst, src0, src1, uir_ascendc::Counted(count)), at.line());           \
  }
UIR_BINARY(Add)
UIR_BINARY(Sub)
UIR_BINARY(Mul)
UIR_BINARY(Div)
UIR_BINARY(Max)
UIR_BINARY(Min)
UIR_BINARY(And)
UIR_BINARY(Or)
#undef UIR_BINARY

#define UIR_SCALAR(Name)                                                                                             \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask[],             \
            const Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {                 \
    uir_ascendc::Run(uir_ascendc::WithScalar(#Name, dst, src, scalarValue,                                           \
                                             uir_ascendc::Bits(mask, repeatTime, isSetMask), repeatParams),          \
                     at.line());                                                                                     \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask,               \
            const Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {                 \
    uir_ascendc::Run(uir_ascendc::WithScalar(#Name, dst, src, scalarValue,                                           \
                                             uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams),        \
                     at.line());                                                                                     \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int32_t& count,        \
            Site at = Site::Here()) {                                                                                \
    uir_ascendc::Run(uir_ascendc::WithScalar(#Name, dst, src, scalarValue, uir_ascendc::Counted(count)), at.line()); \
  }
UIR_SCALAR(Adds)
UIR_SCALAR(Muls)
UIR_SCALAR(Maxs)
UIR_SCALAR(Mins)
UIR_SCALAR(ShiftLeft)
UIR_SCALAR(ShiftRight)
UIR_SCALAR(LeakyRelu)
#undef UIR_SCALAR

/*! \brief dst += src * scalar. */
template <typename T, typename U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, const int32_t& count,
          Site at = Site::Here()) {
  uir_ascendc::Run(uir_ascendc::WithScalar("Axpy", dst, src, scalarValue, uir_ascendc::Counted(count)), at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask,
          const Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {
  uir_ascendc::Run(uir_ascendc::WithScalar("Axpy", dst, src, scalarValue,
                                           uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams),
                   at.line());
}

/*! \brief dst += src0 * src1. */
template <typename T, typename U>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, const int32_t& count,
               Site at = Site::Here()) {
  uir_ascendc::Run(uir_ascendc::Binary("MulAddDst", dst, src0, src1, uir_ascendc::Counted(count)), at.line());
}
template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, const uint64_t mask,
               const Given repeatTime, const BinaryRepeatParams& repeatParams, Site at = Site::Here()) {
  uir_ascendc::Run(
      uir_ascendc::Binary("MulAddDst", dst, src0, src1, uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams),
      at.line());
}

template <typename T, typename U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint32_t count,
          Site at = Site::Here()) {
  UirVector vector = uir_ascendc::Unary("Cast", dst, src, uir_ascendc::Counted(count));
  vector.mode = static_cast<int32_t>(roundMode);
  uir_ascendc::Run(vector, at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint64_t mask[],
          const Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::Unary("Cast", dst, src, uir_ascendc::Bits(mask, repeatTime, isSetMask), repeatParams);
  vector.mode = static_cast<int32_t>(roundMode);
  uir_ascendc::Run(vector, at.line());
}
template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint64_t mask,
          const Given repeatTime, const UnaryRepeatParams& repeatParams, Site at = Site::Here()) {
  UirVector vector =
      uir_ascendc::Unary("Cast", dst, src, uir_ascendc::Masked(mask, repeatTime, isSetMask), repeatParams);
  vector.mode = static_cast<int32_t>(roundMode);
  uir_ascendc::Run(vector, at.line());
}

template <typename T>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::VectorOf("Duplicate", uir_ascendc::Counted(count));
  vector.dst = dst.uir_tensor();
  vector.has_scalar = 1;
  vector.scalar = uir_ascendc::ScalarOf(scalarValue);
  uir_ascendc::Run(vector, at.line());
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask, const Given repeatTime,
               const Given dstBlockStride, const Given dstRepeatStride, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::VectorOf("Duplicate", uir_ascendc::Masked(mask, repeatTime, isSetMask));
  vector.dst = dst.uir_tensor();
  vector.has_scalar = 1;
  vector.scalar = uir_ascendc::ScalarOf(scalarValue);
  vector.dst_stride = {dstBlockStride, dstRepeatStride};
  uir_ascendc::Run(vector, at.line());
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask[], const Given repeatTime,
               const Given dstBlockStride, const Given dstRepeatStride, Site at = Site::Here()) {
  UirVector vector = uir_ascendc::VectorOf("Duplicate", uir_ascendc::Bits(mask, repeatTime, isSetMask));
  vector.dst = dst.uir_tensor();
  vector.has_scalar = 1;
  vector.scalar = uir_ascendc::ScalarOf(scalarValue);
  vector.dst_stride = {dstBlockStride, dstRepeatStride};
  uir_ascendc::Run(vector, at.line());
}

}  // namespace AscendC
