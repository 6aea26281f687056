// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: __half, computed in float and rounded to nearest even.
#ifndef UIR_SIMT_CUDA_FP16_H_
#define UIR_SIMT_CUDA_FP16_H_

#include "uir_simt/narrow.h"
#include "uir_simt/narrow_type.h"
#include "uir_simt/prelude.h"
#include "uir_simt/unwritten.h"

UIR_SIMT_NARROW_FLOAT(__half, half, uir_simt::kHalf, uir_simt::float_to_half, uir_simt::half_to_float,
                      uir_simt::unwritten_half)
typedef __half half;
typedef __half2 half2;

#endif  // UIR_SIMT_CUDA_FP16_H_
