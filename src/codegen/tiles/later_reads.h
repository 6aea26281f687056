// SPDX-License-Identifier: Apache-2.0
// Whether what lies outside of a tile's valid box is never read again.
#pragma once

#include <vector>

#include "codegen/scope.h"
#include "codegen/uses.h"

namespace uir::codegen::tiles {

//! \brief Whether every read of a pointer keeps to the boxes of all its uses before, in any iteration of loops.
//!
//! Tiles that lie beside each other in one pointer, as those that a loop has in flight, keep apart; of each the end
//! only moves back while time goes on:
//!
//!     unary.exp t[12288*(k % 2); (32,384); rows :n - 32*k], u
//!     move y, t[12288*(k % 2); (1,12288); cols :384*n - 12288*k]
//!
//! Then whoever uses the tile may leave anything outside of its box: no later iOp reads it.  Boxes of one run of
//! elements count as that, whatever rows and columns they have.
//! \param uses All of the pointer's.
//! \param scope The graph's sizes, units and loops.
bool LaterReadsKeepInside(const std::vector<const Use*>& uses, const Scope& scope);

}  // namespace uir::codegen::tiles
