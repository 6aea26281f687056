// SPDX-License-Identifier: Apache-2.0
// Many rows of attention on the matrix tiles of a CPU (AMX, bfloat16, sums in float32). Numbers of float32 are sums of
// pieces of 8 bits: three of each side, of which six products count, are as exact as float32.
#pragma once

#include "library/attention_units.h"

namespace uir::library {

/*! Whether the rows of each unit are so many that tiles pay, and this CPU has tiles. */
bool TilesPay(const AttentionAttrs& attrs, int64_t rows);

//! Attention of all units, whose keys, values, masks and results are float32; false where a query, key or value is
//! infinite, NaN, or very small or large: what is written then does not count.
bool RunTiledAttention(const AttentionAttrs& attrs, const AttentionUnits& units, int threads);

}  // namespace uir::library
