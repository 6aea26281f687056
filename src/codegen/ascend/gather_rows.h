// SPDX-License-Identifier: Apache-2.0
// Rows of a tile from elements that lie anywhere in the UB, by the vector unit's Gather.
#pragma once

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

//! \brief Copies columns [0, box.col_end) of the rows of a box from `from` to `to`.
//! \param to Rows start at blocks, columns follow each other.
//! \param from Any strides.
//! \param lead Elements at the start of every row of `to` that have none in `from`: they get the first one.
//! \note One table of byte offsets serves all rows.  Elements of 8 bytes are gathered as halves, those of one byte are
//! widened to half before and narrowed after.
void GatherRows(Emitter& e, const Tile& to, const Tile& from, const Box& box, int64_t lead = 0);

}  // namespace uir::codegen::ascend
