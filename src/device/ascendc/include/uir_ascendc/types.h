// SPDX-License-Identifier: Apache-2.0
// Keywords, numbers and enumerations of Ascend C, for g++.
#pragma once

// C's header alone: that of libstdc++ brings the special functions, which take longer to read than most texts.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#include <stdint.h>

#include <type_traits>

#include "abi.h"

#define __global__ __attribute__((visibility("default")))
#define __aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __inout_pipe__(pipe)
#define __in_pipe__(pipe)
#define __out_pipe__(pipe)
#define __NPU_ARCH__ 2201
#define GM_ADDR __gm__ uint8_t*
#define ASCEND_IS_AIV (uir_ascendc_is_vector_core() != 0)
#define ASCEND_IS_AIC (uir_ascendc_is_vector_core() == 0)

#define UIR_CORE_OF_KERNEL_TYPE_AIV_ONLY "aiv"
#define UIR_CORE_OF_KERNEL_TYPE_AIC_ONLY "aic"
#define UIR_CORE_OF_KERNEL_TYPE_MIX_AIC_1_1 "mix_1_1"
#define UIR_CORE_OF_KERNEL_TYPE_MIX_AIC_1_2 "mix_1_2"
#define KERNEL_TASK_TYPE_DEFAULT(type) uir_ascendc_task_type(UIR_CORE_OF_##type, __LINE__)

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace uir_ascendc {

/*! \brief A line of the kernel's text; the last, defaulted parameter of what the text calls. */
class Site {
 public:
  static constexpr Site Here(int line = __builtin_LINE()) { return Site(line); }
  int line() const { return line_; }

 private:
  explicit constexpr Site(int line) : line_(line) {}
  int line_;
};

/*! \brief An integer parameter that is narrower on the device; it keeps what the text gave, to be checked. */
class Given {
 public:
  template <typename I, typename = std::enable_if_t<std::is_integral<I>::value || std::is_enum<I>::value>>
  constexpr Given(I value) : value_(static_cast<int64_t>(value)) {}
  constexpr operator int64_t() const { return value_; }

 private:
  int64_t value_;
};

/*! \brief A number of two bytes. */
template <int kType>
struct Narrow {
  uint16_t bits;

  Narrow() = default;
  template <typename A, typename = std::enable_if_t<std::is_arithmetic<A>::value>>
  Narrow(A value) : bits(uir_ascendc_bits_of(static_cast<float>(value), kType)) {}
  operator float() const { return uir_ascendc_float_of(bits, kType); }
};

}  // namespace uir_ascendc

using half = uir_ascendc::Narrow<kUirHalf>;
using bfloat16_t = uir_ascendc::Narrow<kUirBfloat16>;

namespace AscendC {

/*! \brief A float rounded to bfloat16, ties to even. */
inline bfloat16_t ToBfloat16(const float& fVal) { return bfloat16_t(fVal); }
inline bfloat16_t Cast(const float& fVal) { return ToBfloat16(fVal); }
inline float Cast(const bfloat16_t& bVal) { return bVal; }
inline float ToFloat(const bfloat16_t& bVal) { return bVal; }

using TEventID = int8_t;

enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  C2PIPE2GM,
  C2PIPE2LOCAL,
  MAX,
};
using QuePosition = TPosition;

enum class HardEvent : uint8_t {
  MTE2_MTE1,
  MTE1_MTE2,
  MTE1_M,
  M_MTE1,
  MTE2_V,
  V_MTE2,
  MTE3_V,
  V_MTE3,
  M_V,
  V_M,
  V_V,
  MTE3_MTE1,
  MTE1_MTE3,
  MTE1_V,
  MTE2_M,
  M_MTE2,
  V_MTE1,
  M_FIX,
  FIX_M,
  MTE3_MTE2,
  MTE2_MTE3,
  S_V,
  V_S,
  S_MTE2,
  MTE2_S,
  S_MTE3,
  MTE3_S,
  MTE2_FIX,
  FIX_MTE2,
  FIX_S,
  M_S,
  FIX_MTE3,
  MTE1_FIX,
  FIX_MTE1,
  FIX_FIX,
  MAX,
};

enum class RoundMode : uint8_t {
  CAST_NONE,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD,
};
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class ReduceType { NONE = -1, SUM, MAX, MIN };
enum class MaskMode : uint8_t { NORMAL, COUNTER };

}  // namespace AscendC

namespace uir_ascendc {

template <typename T>
struct TypeOf;
#define UIR_TYPE(T, code)              \
  template <>                          \
  struct TypeOf<T> {                   \
    static constexpr int value = code; \
  };
UIR_TYPE(half, kUirHalf)
UIR_TYPE(bfloat16_t, kUirBfloat16)
UIR_TYPE(float, kUirFloat)
UIR_TYPE(int8_t, kUirInt8)
UIR_TYPE(uint8_t, kUirUint8)
UIR_TYPE(int16_t, kUirInt16)
UIR_TYPE(uint16_t, kUirUint16)
UIR_TYPE(int32_t, kUirInt32)
UIR_TYPE(uint32_t, kUirUint32)
UIR_TYPE(int64_t, kUirInt64)
UIR_TYPE(uint64_t, kUirUint64)
UIR_TYPE(double, kUirDouble)
#undef UIR_TYPE

/*! \brief The memory of a position. */
constexpr int MemoryOf(AscendC::TPosition position) {
  using AscendC::TPosition;
  switch (position) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
    case TPosition::SPM:
      return kUirL1;
    case TPosition::A2:
      return kUirL0a;
    case TPosition::B2:
      return kUirL0b;
    case TPosition::CO1:
      return kUirL0c;
    case TPosition::C2:
      return kUirBias;
    case TPosition::C2PIPE2GM:
    case TPosition::C2PIPE2LOCAL:
      return kUirFixbuf;
    case TPosition::VECIN:
    case TPosition::VECOUT:
    case TPosition::VECCALC:
      return kUirUb;
    default:
      return kUirGm;
  }
}

/*! \brief The scalar operand of a type. */
template <typename T>
UirScalar ScalarOf(const T& value) {
  UirScalar scalar;
  if (std::is_integral<T>::value) {
    scalar.integer = static_cast<int64_t>(value);
  } else {
    scalar.real = static_cast<double>(static_cast<float>(value));
  }
  return scalar;
}

}  // namespace uir_ascendc
