// SPDX-License-Identifier: Apache-2.0
// Many rows of attention dealt to threads, each part of a unit to one, which lays out the unit's keys for itself.
#pragma once

#include <functional>

#include "library/attention_units.h"

namespace uir::library {

/*! Some rows of a unit, and the unit that the same thread has next, where that is known. */
struct AttentionPart {
  const AttentionUnit& unit;
  const AttentionRow* rows;
  int64_t count;
  const AttentionUnit* next;
};

/*! What computes a part; false where what it writes does not count. */
using AttendPart = std::function<bool(const AttentionPart& part)>;

//! Calls `attend` for parts of all units, with borders at multiples of `granule` rows, the longest first; false where
//! one of them was false: others may be left out then.
bool RunParts(const AttentionUnits& all, int64_t granule, int threads, const AttendPart& attend);

}  // namespace uir::library
