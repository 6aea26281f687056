// SPDX-License-Identifier: Apache-2.0
/*!
 * \file transpose.h
 * \brief Rows and columns exchanged.
 */
#ifndef UIR_CODEGEN_BANG_TRANSPOSE_H_
#define UIR_CODEGEN_BANG_TRANSPOSE_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*! \brief to[i, j] = from[j, i] over the box of `to`, both in NRAM. */
void TransposeTile(Emitter& e, const Tile& to, const Tile& from);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_TRANSPOSE_H_
