// SPDX-License-Identifier: Apache-2.0
// Keywords, numbers and enumerations of BANG C, for g++.
#pragma once

// C's header alone: that of libstdc++ brings the special functions, which take longer to read than most texts.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "abi.h"

#define __BANG__ 1
#define __mlu_global__ extern "C" __attribute__((visibility("default")))
#define __mlu_entry__ __mlu_global__
#define __mlu_host__
#define __mlu_device__
#define __mlu_func__ static inline
#define __mlu_const__ static const

// A memory of a core or cluster is a section of the kernel's library. The bytes of whoever runs are in it. Nothing of
// it is in the file, which "#" makes of the section's flags: it ends the line that the compiler writes.
#define UIR_BANG_SECTION(name) static __attribute__((used, aligned(128), section(name ",\"aw\",@nobits#")))
#define __nram__ UIR_BANG_SECTION("uir_nram")
#define __wram__ UIR_BANG_SECTION("uir_wram")
#define __mlu_shared__ UIR_BANG_SECTION("uir_sram")
#define __ldram__ UIR_BANG_SECTION("uir_ldram")

// Functions of these headers: the memory that they access themselves is their own stack, at which the model never
// looks. The sanitizer would put a call before each access all the same, to be compiled and made for nothing.
#define UIR_BANG_UNSEEN __attribute__((no_sanitize("thread")))
#define UIR_BANG_FUNCTION UIR_BANG_UNSEEN inline

#define taskId (static_cast<int>(uir_bang_register(kBangTaskId)))
#define taskIdX (static_cast<int>(uir_bang_register(kBangTaskIdX)))
#define taskIdY (static_cast<int>(uir_bang_register(kBangTaskIdY)))
#define taskIdZ (static_cast<int>(uir_bang_register(kBangTaskIdZ)))
#define taskDim (static_cast<int>(uir_bang_register(kBangTaskDim)))
#define taskDimX (static_cast<int>(uir_bang_register(kBangTaskDimX)))
#define taskDimY (static_cast<int>(uir_bang_register(kBangTaskDimY)))
#define taskDimZ (static_cast<int>(uir_bang_register(kBangTaskDimZ)))
#define coreId (static_cast<int>(uir_bang_register(kBangCoreId)))
#define coreDim (static_cast<int>(uir_bang_register(kBangCoreDim)))
#define clusterId (static_cast<int>(uir_bang_register(kBangClusterId)))
#define clusterDim (static_cast<int>(uir_bang_register(kBangClusterDim)))

namespace uir_bang {

/*! \brief A line of the kernel's text; the last, defaulted parameter of what the text calls. */
class Site {
 public:
  static constexpr Site Here(int line = __builtin_LINE()) { return Site(line); }
  UIR_BANG_UNSEEN int line() const { return line_; }

 private:
  explicit constexpr Site(int line) : line_(line) {}
  int line_;
};

}  // namespace uir_bang

/*! \brief fp16, with which scalar code computes in float. */
struct half {
  uint16_t bits;

  half() = default;
  template <typename A, typename = std::enable_if_t<std::is_arithmetic<A>::value>>
  half(A value) : bits(uir_bang_bits_of(static_cast<float>(value), kBangHalf)) {}
  operator float() const { return uir_bang_float_of(bits, kBangHalf); }
};

/*! \brief bf16: bits alone, as in the vendor's header. */
struct bfloat16_t {
  unsigned short value;
};

using fix8 = int8_t;
using int8 = int8_t;
using int16 = int16_t;

typedef enum {
  GDRAM2NRAM = 0,
  NRAM2GDRAM,
  LDRAM2NRAM,
  NRAM2LDRAM,
  GDRAM2WRAM,
  WRAM2GDRAM,
  LDRAM2WRAM,
  WRAM2LDRAM,
  NRAM2NRAM,
  NRAM2WRAM,
  WRAM2NRAM,
  GDRAM2SRAM,
  SRAM2GDRAM,
  LDRAM2SRAM,
  SRAM2LDRAM,
  SRAM2NRAM,
  NRAM2SRAM,
  SRAM2WRAM,
  WRAM2SRAM,
  GDRAM2GDRAM,
  GDRAM2LDRAM,
  LDRAM2GDRAM,
  LDRAM2LDRAM,
  SRAM2SRAM,
} mluMemcpyDirection_t;

typedef enum {
  FUSION_FMA = 0,
  FUSION_FMS,
  FUSION_FAM,
  FUSION_FSM,
  FUSION_FAA,
  FUSION_FAS,
  FUSION_FSS,
  FUSION_FSA,
} mluFusionOpCode;

// Of the host's half of the file.
typedef struct {
  unsigned int x;
  unsigned int y;
  unsigned int z;
} cnrtDim3_t;
typedef enum {
  cnrtFuncTypeBlock = 1,
  cnrtFuncTypeUnion1 = 4,
  cnrtFuncTypeUnion2 = 8,
  cnrtFuncTypeUnion4 = 16,
  cnrtFuncTypeUnion8 = 32,
  cnrtFuncTypeUnion16 = 64,
} cnrtFunctionType_t;
typedef struct cnrtQueueSt* cnrtQueue_t;

namespace uir_bang {

template <typename T>
struct TypeOf;
#define UIR_BANG_TYPE(T, code)         \
  template <>                          \
  struct TypeOf<T> {                   \
    static constexpr int value = code; \
  };
UIR_BANG_TYPE(half, kBangHalf)
UIR_BANG_TYPE(bfloat16_t, kBangBfloat16)
UIR_BANG_TYPE(float, kBangFloat)
UIR_BANG_TYPE(char, kBangInt8)
UIR_BANG_TYPE(signed char, kBangInt8)
UIR_BANG_TYPE(unsigned char, kBangUint8)
UIR_BANG_TYPE(short, kBangInt16)
UIR_BANG_TYPE(unsigned short, kBangUint16)
UIR_BANG_TYPE(int, kBangInt32)
UIR_BANG_TYPE(unsigned int, kBangUint32)
#undef UIR_BANG_TYPE

UIR_BANG_FUNCTION double RealOf(half value) { return static_cast<float>(value); }
UIR_BANG_FUNCTION double RealOf(bfloat16_t value) { return uir_bang_float_of(value.value, kBangBfloat16); }
template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
UIR_BANG_UNSEEN double RealOf(T value) {
  return static_cast<double>(value);
}
UIR_BANG_FUNCTION int64_t IntegerOf(half) { return 0; }
UIR_BANG_FUNCTION int64_t IntegerOf(bfloat16_t) { return 0; }
template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
UIR_BANG_UNSEEN int64_t IntegerOf(T value) {
  return std::is_integral<T>::value ? static_cast<int64_t>(value) : 0;
}

/*! \brief Operands: memory, or a value. */
template <typename T>
UIR_BANG_UNSEEN UirBangOperand Operand(const T* address) {
  return {address, static_cast<uint32_t>(TypeOf<T>::value), 0, 0, 0};
}
template <typename T>
UIR_BANG_UNSEEN UirBangOperand Value(T value) {
  return {nullptr, static_cast<uint32_t>(TypeOf<T>::value), 1, RealOf(value), IntegerOf(value)};
}

/*! \brief A call under construction. */
class Call {
 public:
  UIR_BANG_UNSEEN explicit Call(const char* name) { call_.name = name; }
  template <typename T>
  UIR_BANG_UNSEEN Call& operator<<(T* address) {
    call_.operand[call_.operands++] = Operand(static_cast<const T*>(address));
    return *this;
  }
  UIR_BANG_UNSEEN Call& With(UirBangOperand operand) {
    call_.operand[call_.operands++] = operand;
    return *this;
  }
  UIR_BANG_UNSEEN Call& operator<<(int number) {
    call_.number[call_.numbers++] = number;
    return *this;
  }
  UIR_BANG_UNSEEN void Run(Site at) const { uir_bang_call(&call_, at.line()); }
  UIR_BANG_UNSEEN double Value(Site at) const { return uir_bang_value(&call_, at.line()); }

 private:
  UirBangCall call_{};
};

}  // namespace uir_bang
