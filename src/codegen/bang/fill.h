// SPDX-License-Identifier: Apache-2.0
/*!
 * \file fill.h
 * \brief One value in all elements of a tile of NRAM.
 */
#ifndef UIR_CODEGEN_BANG_FILL_H_
#define UIR_CODEGEN_BANG_FILL_H_

#include <string>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*!
 * \brief Fills the elements of a tile's box.
 * \param condition C++ text that guards it; empty: always.
 */
void FillTile(Emitter& e, const Tile& tile, const ffi::Any& value, const std::string& condition = "");

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_FILL_H_
