// SPDX-License-Identifier: Apache-2.0
/*!
 * \file elementwise.h
 * \brief Elementwise pieces that other emitters print too.
 */
#ifndef UIR_CODEGEN_BANG_ELEMENTWISE_H_
#define UIR_CODEGEN_BANG_ELEMENTWISE_H_

#include <string>
#include <vector>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*! \brief to = name(a, b) of tiles in NRAM of one shape, over the box of `to`; what lies outside may change. */
void BinaryTile(Emitter& e, const std::string& name, const Tile& to, const Tile& a, const Tile& b);
/*! \brief to = from, converted, over a box of both; what lies outside of it stays if `spares`. */
void ConvertTile(Emitter& e, const Tile& to, const Tile& from, const Box& box, bool spares);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_ELEMENTWISE_H_
