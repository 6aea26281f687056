// SPDX-License-Identifier: Apache-2.0
// What a conversion between layouts takes (`Emitter::Convert` prints it).
#pragma once

#include <array>
#include <vector>

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

/*! \brief Shuffles for one register up to which they are cheaper than scratch. */
constexpr size_t kShuffles = 2;

/*! \brief Blocks along the rows, rows within a block, blocks along the columns, columns within a block. */
using RegisterOffset = std::array<int64_t, 4>;

//! \brief How far on, in `from`, the lanes of `to` find the elements that one register of theirs holds.
//! One offset for each shuffle that it takes to fill a register.
std::vector<RegisterOffset> RegisterOffsets(const Fragment& to, const Fragment& from);

}  // namespace uir::codegen::cuda
