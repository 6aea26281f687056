// SPDX-License-Identifier: Apache-2.0
// One value for all columns of a row: a block of 32 bytes that holds it, read again and again.
#pragma once

#include <functional>
#include <string>

#include "codegen/ascend/emitter.h"
#include "codegen/ascend/vector_run.h"
#include "igraph/nodes.h"

namespace uir::codegen::ascend {

//! \brief Makes blocks of the values of rows, in chunks that work buffers hold.
//! \param column A value for each row; box: which rows count.
//! \param rows How many, from the first on.
//! \param use Prints what reads the blocks: of `most` rows from `row` on, of which `n` count; block k is of row
//! `row + k`.
void EachBlocks(Emitter& e, const Tile& column, const Bound& rows,
                const std::function<void(int64_t row, int64_t most, const Tile& blocks, const Bound& n)>& use);

/*! \brief Whether a slice shows one value in all columns of a row, or in all rows of one column. */
bool IsSpread(const ISlice& slice);

//! \brief Whether `EmitSpread` reaches the tiles of a function, of which one source is a column, where they lie; others
//! are computed beside.
bool SpreadReaches(Emitter& e, const IOp& iop);

//! \brief A binary function of which one source is a column for all columns (`IsSpread`), of two or four bytes.
//! \param api The vendor's function.
void EmitSpread(Emitter& e, const std::string& api, const IOp& iop);

}  // namespace uir::codegen::ascend
