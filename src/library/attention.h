// SPDX-License-Identifier: Apache-2.0
// Attention over keys of which a mask or a band opens some: what they close at the beginning and at the end is not
// read.
#pragma once

#include "library/attrs.h"
#include "library/dtype.h"

namespace uir::library {

/*! A tensor's first element, and the type of all. */
template <typename Char>
struct Typed {
  Char* data = nullptr;
  DType type = DType::kF32;

  /*! Where its element `index` is. */
  Char* at(int64_t index) const { return data + index * static_cast<int64_t>(SizeOf(type)); }
};

/*! The operands; `mask` has no data without one. Keys and values are of one type. */
struct AttentionData {
  Typed<const char> query, key, value, mask;
  Typed<char> out;
};

/*! One query: keys outside of [begin, end) are closed to it. */
struct AttentionRow {
  const float* query;
  const char* mask;
  char* out;
  int64_t begin, end;
};

/*! Rows of queries in one pass over their keys; sums are float32. */
void RunAttention(const AttentionAttrs& attrs, const AttentionData& data, int threads);

}  // namespace uir::library
