// SPDX-License-Identifier: Apache-2.0
// Many rows of attention in the tiles that products of many rows are made of (`panel_kernels.h`): keys and values are
// laid out once for all rows of a head, and all sums stay in registers as long as they can.
#pragma once

#include <string>
#include <vector>

#include "library/attention_units.h"

namespace uir::library {

/*! Whether the rows of each unit are so many that panels pay, and this CPU has their code. */
bool PanelsPay(const AttentionAttrs& attrs, int64_t rows);

//! Attention of all units, whose keys, values, masks and results are float32; false where a query, key or value is
//! infinite, NaN or very large: what is written then does not count.
bool RunPanelAttention(const AttentionAttrs& attrs, const AttentionUnits& units, int threads);

/*! The code that this CPU runs, the fastest first, and which of it is taken from now on; false where it is none. */
std::vector<std::string> AttentionVectors();
bool SetAttentionVectors(const std::string& name);

}  // namespace uir::library
