// SPDX-License-Identifier: Apache-2.0
// Attention over keys of which a mask opens some: what it closes at the beginning and at the end is not read.
#pragma once

#include "library/attrs.h"

namespace uir::library {

/*! First elements of the operands; `mask` is null without one. */
struct AttentionData {
  const float *query = nullptr, *key = nullptr, *value = nullptr, *mask = nullptr;
  float* out = nullptr;
};

/*! Rows of queries in one pass over their keys, in float32. */
void RunAttention(const AttentionAttrs& attrs, const AttentionData& data, int threads);

}  // namespace uir::library
