// SPDX-License-Identifier: Apache-2.0
// Attention whose keys, values, mask or results are narrower than float32, for what computes in float32 alone: the keys
// that some row sees are widened once for all rows, results are rounded at the end.
#pragma once

#include <functional>

#include "library/attention_units.h"

namespace uir::library {

/*! What computes units of float32; false where what is written does not count. */
using Float32Attention = std::function<bool(const AttentionAttrs&, const AttentionUnits&)>;

//! `units`, which are of `data`, in float32; false where `run` says so: nothing is written then.
bool RunWidened(const AttentionAttrs& attrs, const AttentionData& data, AttentionUnits units, int threads,
                const Float32Attention& run);

}  // namespace uir::library
