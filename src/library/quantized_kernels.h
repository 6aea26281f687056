// SPDX-License-Identifier: Apache-2.0
// What products with a weight of few bits compute with, by the instructions of the CPU.
#pragma once

#include <utility>
#include <vector>

#include "library/parallel.h"
#include "library/quantized_layout.h"

namespace uir::library {

/*! Of one set of instructions; empty and null: not with these. */
struct QuantizedKernels {
  using Rows = void (*)(const Panels&, const Operands&, int64_t row, int64_t rows, Range blocks);
  using Bytes = void (*)(const Panels&, const Operands&, const ByteRow*, int64_t row, Range blocks);
  using Places = void (*)(const Panels&, const Operands&, const Digits*, int64_t row, Range blocks);
  template <typename Function>
  using ByRows = std::vector<std::pair<int, Function>>;  // rows, function

  const char* name;
  ByRows<Rows> tiles[Panels::kKinds];
  ByRows<Bytes> bytes[2];  // codes of 4 bits, of 8
  bool (*make_bytes)(const float* x, int64_t groups, int64_t length, const ByteRow&);
  std::vector<Places> digits;  // by the number of rows, less one; codes of 4 bits
  bool (*make_digits)(const float* x, int64_t groups, int64_t length, const Digits&) = nullptr;
  /*! A block's numbers: [k][kBlock]. */
  void (*unpack)(const Panels&, int64_t block, float* to) = nullptr;
  bool on_tiles = false;

  /*! From the best on, those of this CPU. */
  static const std::vector<QuantizedKernels>& All();
};

}  // namespace uir::library
