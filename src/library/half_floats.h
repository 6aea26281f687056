// SPDX-License-Identifier: Apache-2.0
// Many numbers of 16 bits as float32, and back, with the CPU's own instructions where it has them.
#pragma once

#include <cstdint>

#include "library/dtype.h"

namespace uir::library {

/*! Whether the CPU has instructions for float16. */
bool HasHalves();

/*! `count` numbers of a type (not float64) as float32. */
void ToFloats(DType type, const char* from, int64_t count, float* to);

/*! `count` numbers of float32, each times a factor, in a type (not float64), to nearest. */
void FromFloats(DType type, const float* from, float factor, int64_t count, char* to);

}  // namespace uir::library
