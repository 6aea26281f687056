// SPDX-License-Identifier: Apache-2.0
// Printing elementwise programs (tiles/program.h) with vector functions.
//
// `RunProgram` (vector_run.cc) prints one over whole tiles: in count form where all operands lie alike, by repeats
// over the rows where they do not, and in chunks where steps need work buffers.
#pragma once

#include <string>
#include <vector>

#include "codegen/ascend/api.h"
#include "codegen/ascend/emitter.h"
#include "codegen/ascend/vector_run.h"
#include "codegen/tiles/program.h"

namespace uir::codegen::ascend {

using tiles::Program;
using tiles::Step;
using tiles::Value;

//! \brief Prints a program over the target's valid box.
//! \param result What goes to the target, of its dtype.
//! \param sources The operands that inputs name; of the target's shape.
void RunProgram(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<ISlice>& sources);

/*! \brief The same over tiles: the target's, of the slice `target`, then the operands'. */
void RunOnTiles(Emitter& e, const Program& program, Value result, const ISlice& target, const std::vector<Tile>& tiles);

//! \brief Prints a program over windows that lie as they are: the target's first, then the operands'.
//!
//! Rows of windows start at 32-byte blocks; a window's row stride may be 0, which repeats its row.
void RunOnWindows(Emitter& e, const Program& program, Value result, const std::vector<Tile>& windows, const Bound& rows,
                  const Bound& cols);

/*! \brief Bytes that work buffers of an iOp may take: what is free, but no more than helps. */
int64_t WorkBytes(const Emitter& e);

}  // namespace uir::codegen::ascend
