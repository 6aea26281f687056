// SPDX-License-Identifier: Apache-2.0
/*!
 * \file store.h
 * \brief From the UB to global memory, whatever the strides.
 */
#ifndef UIR_CODEGEN_ASCEND_STORE_H_
#define UIR_CODEGEN_ASCEND_STORE_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Writes the elements that lie in both boxes, and nothing else.
 *
 * Rows whose columns follow each other in memory go straight where they start at blocks of the UB, else by way of a
 * work buffer; a transposed slice is turned in the UB first; other elements get a block each and go one by one.
 */
void Store(Emitter& e, Tile to, Tile from);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_STORE_H_
