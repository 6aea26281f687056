// SPDX-License-Identifier: Apache-2.0
// Products with a weight of few bits (uir_tvm.quantized), which is unpacked in registers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "library/attrs.h"
#include "library/matmul.h"

namespace uir::library {

//! Bytes of a packed weight. Blocks of 16 outputs; of a block each group in turn: its codes, words of 32 bits of the 16
//! outputs side by side, then 16 scales and perhaps 16 offsets. Outputs beyond the last have zeros.
int64_t QuantizedBytes(const MatmulAttrs& attrs);

//! The parts of a quantised tensor [n, k] (uir_tvm.quantized) as `RunQuantized` reads them.
void PackQuantized(const MatmulAttrs& attrs, const char* codes, const char* scales, const char* offsets, char* packed);

/*! The product, with its epilogue; float32 but for the weight. */
void RunQuantized(const MatmulAttrs& attrs, const MatmulData& data, int threads);

/*! The instructions that this CPU has for it, the best first, which are used. */
std::vector<std::string> QuantizedVectors();
/*! Use one of these; false where it is none. For tests. */
bool SetQuantizedVectors(const std::string& name);

}  // namespace uir::library
