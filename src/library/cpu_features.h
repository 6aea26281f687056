// SPDX-License-Identifier: Apache-2.0
// Which vectors this CPU computes, for choosing between widths that code is compiled for.
#pragma once

namespace uir::library {

/*! AVX512 as code for vectors of 16 floats needs it: F, VL, DQ and BW. */
bool HasAvx512();

/*! AVX2 and FMA. */
bool HasAvx2();

/*! Whether this CPU has AVX512 and is AMD's, where panels of vectors of 16 floats were measured (Zen 4 and Zen 5). */
bool HasAmdAvx512();

}  // namespace uir::library
