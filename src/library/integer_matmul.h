// SPDX-License-Identifier: Apache-2.0
// Products of matrices of int8, summed in int32 or float32: what the vendors' libraries have of products of bytes.
#pragma once

#include <cstdint>

#include "library/arguments.h"

namespace uir::library {

/*! (a, b, [scale], attributes, out), as call_dps_packed passes them. */
struct IntegerMatmulOperands {
  const DLTensor *a, *b, *scale = nullptr;
  DLTensor* out;
};

//! The operands, all on `device` (a DLDeviceType), of the types and sizes of the operator.
//! \param scaled Whether there is a scale, one number of float32.
//! \param floats Whether the result is of float32; else of int32.
//! \throws ValueError One that does not fit.
IntegerMatmulOperands ReadIntegerMatmul(const ffi::PackedArgs& args, const IntegerMatmulAttrs& attrs, bool scaled,
                                        bool floats, int device);

}  // namespace uir::library
