// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: __half, computed in float and rounded to nearest even.
#pragma once

#include "uir_simt/narrow.h"
#include "uir_simt/narrow_type.h"
#include "uir_simt/prelude.h"
#include "uir_simt/unwritten.h"

UIR_SIMT_NARROW_FLOAT(__half, half, uir_simt::kHalf, uir_simt::float_to_half, uir_simt::half_to_float,
                      uir_simt::unwritten_half)
typedef __half half;
typedef __half2 half2;
