// SPDX-License-Identifier: Apache-2.0
/*!
 * \file copy.h
 * \brief One rectangle from a memory to another by `__memcpy_async`, whatever the strides of both sides.
 */
#ifndef UIR_CODEGEN_BANG_COPY_H_
#define UIR_CODEGEN_BANG_COPY_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*!
 * \brief Copies the elements of a box of `from` to `to`; nothing else of `to` changes.
 *
 * One copy where the box is one run on both sides; segments where rows are runs; where columns lie apart, segments of
 * one element in the 3-D form (slow: the report says so).
 * \note `to` and `from` share no bytes.  One side at most is in WRAM or SRAM; between SRAM and GDRAM the memory core
 * copies for all units of its cluster (memory_core.h).
 */
void Copy(Emitter& e, const Tile& to, const Tile& from, const Box& box);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_COPY_H_
