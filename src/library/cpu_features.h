// SPDX-License-Identifier: Apache-2.0
// Which vectors this CPU computes, for choosing between widths that code is compiled for.
#pragma once

namespace uir::library {

/*! AVX512 as code for vectors of 16 floats needs it: F, VL, DQ and BW. */
bool HasAvx512();

/*! AVX2 and FMA. */
bool HasAvx2();

/*! Whether this CPU has AVX512, and computes its vectors by halves. */
bool HalvesVectors512();

}  // namespace uir::library
