// SPDX-License-Identifier: Apache-2.0
/*!
 * \file broadcast.h
 * \brief One column or row to a whole tile.
 */
#ifndef UIR_CODEGEN_BANG_BROADCAST_H_
#define UIR_CODEGEN_BANG_BROADCAST_H_

#include <string>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*! \brief to = the column (axis "row") or row (axis "col") of `from` again and again, over the box of `to`. */
void BroadcastTile(Emitter& e, const Tile& to, const Tile& from, const std::string& axis);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_BROADCAST_H_
