// SPDX-License-Identifier: Apache-2.0
/*!
 * \file transfer.h
 * \brief One rectangle between global memory and rows of the UB that start at blocks: DataCopy or DataCopyPad.
 */
#ifndef UIR_CODEGEN_ASCEND_TRANSFER_H_
#define UIR_CODEGEN_ASCEND_TRANSFER_H_

#include <string>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Copies the elements of a box from one tile to the other.
 *
 * Both have columns that follow each other; every row of `ub` starts at a block.  DataCopy where the box and the
 * distances are proved to be whole blocks, else DataCopyPad.
 * \param load From `gm` to `ub`; a load spoils the rest of each row's first and last block, or sets it to `pad`.
 * \param pad A literal of the stored type, or empty.
 * \note A store takes boxes whose first column starts at a block.
 */
void Transfer(Emitter& e, const Tile& ub, const Tile& gm, const Box& box, bool load, const std::string& pad = "");

/*! \brief What lies in both boxes; bounds that only the run can compare become names. */
Box Both(Emitter& e, const Box& a, const Box& b);

/*! \brief Where the columns of a box end in one row: where they begin, in a row that is not in the box. */
Bound EndInRow(const Box& box, int64_t row);

/*! \brief A count that is not negative: itself, or a name. */
Bound AtLeastZero(Emitter& e, const Bound& count, const std::string& hint);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_TRANSFER_H_
