// SPDX-License-Identifier: Apache-2.0
// What the vector functions compute, for arrays of each type that they take.
#pragma once

#include <cstdint>
#include <string>

#include "device/ascendc/include/uir_ascendc/abi.h"

namespace uir::ascendc {

/*! \brief dst[i] = f(a[i], b[i], scalar) of n elements; operands may be the same array. */
using Loop = void (*)(uint8_t* dst, const uint8_t* a, const uint8_t* b, const UirScalar& scalar, int64_t n);

/*! \brief A vector function of one type of elements. */
struct Function {
  Loop loop{nullptr};
  /*! \brief The target is read too. */
  bool accumulates{false};
};

/*! \brief The function of a name and type; `loop` is null where the device has none. */
Function FunctionOf(const std::string& name, uint32_t type);

/*! \brief A conversion with a rounding mode (the order of RoundMode), or null where the device has none. */
Loop CastOf(uint32_t from, uint32_t to, int mode);

}  // namespace uir::ascendc
