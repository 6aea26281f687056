// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: __nv_bfloat16, computed in float and rounded to nearest even.
#pragma once

#include "uir_simt/narrow.h"
#include "uir_simt/narrow_type.h"
#include "uir_simt/prelude.h"
#include "uir_simt/unwritten.h"

UIR_SIMT_NARROW_FLOAT(__nv_bfloat16, bfloat16, uir_simt::kBfloat16, uir_simt::float_to_bfloat16,
                      uir_simt::bfloat16_to_float, uir_simt::unwritten_bfloat16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
