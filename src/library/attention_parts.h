// SPDX-License-Identifier: Apache-2.0
// Many rows of attention dealt to threads, each part of a unit to one, which lays out the unit's keys for itself.
#pragma once

#include <functional>
#include <vector>

#include "library/attention.h"
#include "library/parallel.h"

namespace uir::library {

//! Calls `attend` for parts of all units, with borders at multiples of `granule` rows, the longest first; false where
//! one of them was false: others may be left out then.
bool RunParts(const std::vector<AttentionUnit>& units, int64_t granule, int threads,
              const std::function<bool(const AttentionUnit&, const Range& rows)>& attend);

}  // namespace uir::library
