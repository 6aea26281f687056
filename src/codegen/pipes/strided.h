// SPDX-License-Identifier: Apache-2.0
// Whether two strided sets of bytes meet.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace uir::codegen::pipes {

/*! \brief (count, stride) of an index that takes the values 0 .. count - 1. */
using Dim = std::pair<int64_t, int64_t>;

//! \brief Whether low < start + sum(i_d * stride_d) < high for some i_d in [0, count_d).
//!
//! Exact: a search over the strides from the longest to the shortest, in which an index takes only the values from
//! which the shorter strides can still reach the interval; a common divisor of these that is no longer than the
//! interval ends it.  A search that grows beyond a bound answers true.
bool Reaches(int64_t start, std::vector<Dim> dims, int64_t low, int64_t high);

}  // namespace uir::codegen::pipes
