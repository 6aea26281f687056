// SPDX-License-Identifier: Apache-2.0
/*!
 * \file fill.h
 * \brief One value in all elements of a tile of the UB.
 */
#ifndef UIR_CODEGEN_ASCEND_FILL_H_
#define UIR_CODEGEN_ASCEND_FILL_H_

#include <string>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Fills a tile whose rows start at blocks, up to the end of each row's last block.
 * \param condition C++ text that guards it; empty: always.
 */
void FillTile(Emitter& e, const Tile& tile, const ffi::Any& value, const std::string& condition = "");

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_FILL_H_
