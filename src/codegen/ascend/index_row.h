// SPDX-License-Identifier: Apache-2.0
// Rows of numbers that count up, by vector functions alone.
//
// The vendor's CreateVecIndex is none: its headers write the first block by the scalar unit, which nothing orders with
// V and MTE3, and take a flag of S_V for it.
#pragma once

#include <string>

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

//! \brief Writes first, first + step, ... to the first `count` elements of a row of int32, and nothing behind them.
//!
//! A kernel that keeps an index row (`Emitter::KeepIndex`) has it copied; else a block is made under masks and doubled.
//! \param first A number, or an expression of int32.
void IndexRow(Emitter& e, const Tile& row, int64_t count, const std::string& first = "0", int64_t step = 1);

}  // namespace uir::codegen::ascend
