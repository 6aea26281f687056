// SPDX-License-Identifier: Apache-2.0
/*!
 * \file relayout.h
 * \brief Elements from one layout to another within the UB.
 */
#ifndef UIR_CODEGEN_ASCEND_RELAYOUT_H_
#define UIR_CODEGEN_ASCEND_RELAYOUT_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Copies the elements of a box of `from` to `to`; nothing else of `to` changes.
 *
 * By the first of these that both layouts allow: whole blocks (DataCopy); rows of `to` that start at blocks are
 * gathered, so that `from` may have any strides (a transposition gathers columns); rows whose place within a block is
 * known are gathered beside and copied under a bit mask; the scalar unit moves one element after the other.
 * \note `to` and `from` share no bytes.
 */
void Relayout(Emitter& e, const Tile& to, const Tile& from, const Box& box);

/*! \brief Elements of the first block before a tile's first element, where that is the same for every row. */
std::optional<int64_t> PhaseOf(const Emitter& e, const Tile& tile);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_RELAYOUT_H_
