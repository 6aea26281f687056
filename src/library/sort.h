// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "library/attrs.h"

namespace uir::library {

/*! How the numbers of a tensor that is sorted compare. */
enum class SortType { kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64 };

/*! First elements of the operands, contiguous: x [outer, length, inner], results [outer, count, inner]. */
struct SortData {
  const char* x = nullptr;
  SortType type = SortType::kF32;
  char* values = nullptr;     // of x's type; null: none
  char* indices = nullptr;    // null: none
  bool wide_indices = false;  // int64, else int32
};

//! The first `count` of the sorted elements along `length`, on up to `threads` of the pool. Equal elements keep their
//! order; NaN is greater than all numbers, and -0 equals 0.
void RunSort(const SortAttrs& attrs, const SortData& data, int threads);

}  // namespace uir::library
