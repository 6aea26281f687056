// SPDX-License-Identifier: Apache-2.0
/*!
 * \file transpose.h
 * \brief Transpositions within the UB by squares of blocks.
 */
#ifndef UIR_CODEGEN_ASCEND_TRANSPOSE_H_
#define UIR_CODEGEN_ASCEND_TRANSPOSE_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Whether `TransposeBlocks` can do it: elements of two or four bytes, rows of both tiles at blocks, 16 columns
 * of the target to a call, and as many rows as a block has elements.
 * \param turned The source as the target sees it: its rows follow each other, its columns lie apart.
 */
bool InSquares(const Tile& to, const Tile& turned);

/*! \brief All of a tile from all of its source, whatever of it is valid. */
void TransposeBlocks(Emitter& e, const Tile& to, const Tile& turned);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_TRANSPOSE_H_
