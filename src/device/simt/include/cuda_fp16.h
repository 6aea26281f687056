// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: __half, computed in float and rounded to nearest even.
#ifndef UIR_SIMT_CUDA_FP16_H_
#define UIR_SIMT_CUDA_FP16_H_

#include "uir_simt/narrow.h"
#include "uir_simt/narrow_type.h"
#include "uir_simt/prelude.h"

UIR_SIMT_NARROW_FLOAT(__half, half, uir_simt::kHalf, uir_simt::float_to_half, uir_simt::half_to_float, 0x7e2d)
typedef __half half;
typedef __half2 half2;

#endif  // UIR_SIMT_CUDA_FP16_H_
