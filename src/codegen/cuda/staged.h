// SPDX-License-Identifier: Apache-2.0
// Whether all of a slice in shared memory was filled, also what a product reads beyond its result's box.
#pragma once

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

//! \brief Whether every element of a slice, its bounds and those of other operands left aside, is one that whole
//! moves into the tile filled: each row of the slice ends within a row of the tile, its last row within those filled.
bool IsFilled(const std::vector<Use>& uses, const Scope& scope, const ISlice& slice);

}  // namespace uir::codegen::cuda
