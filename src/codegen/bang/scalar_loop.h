// SPDX-License-Identifier: Apache-2.0
// Scalar code over the elements of tiles in NRAM, for what vector functions lack.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/bang/emitter.h"

namespace uir::codegen::bang {

/*! \brief Lines for one element: the target's text first, then the sources'. */
using ElementBody = std::function<std::vector<std::string>(const std::vector<std::string>& at)>;

//! \brief A loop over the elements of a box, tiles[0] being written.
//! \param turns What a tile's row and column are where they are not the box's: nullptr for all alike.
//! \note An element takes tens of cycles, against one for 32 in a vector function: the report says so.
void ScalarLoop(Emitter& e, const std::vector<Tile>& tiles, const Box& box, const ElementBody& body);

}  // namespace uir::codegen::bang
