// SPDX-License-Identifier: Apache-2.0
// Elements one by one through the scalar unit: how they are named, and what no vector function computes.
#pragma once

#include <string>
#include <vector>

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

/*! \brief The offset of element (row, col) within a tile's tensor, as text. */
std::string OffsetText(const Emitter& e, const Tile& tile, const std::string& row, const std::string& col);
/*! \brief A call of `GetValue` or `SetValue` of a tile's tensor. */
std::string Member(const Emitter& e, const Tile& tile, const std::string& member, std::vector<std::string> args);

/*! \brief Whether a binary function is left to the scalar unit: quotients and remainders of int64. */
bool HasScalarQuotient(const std::string& dtype, const std::string& name);
/*! \brief floordiv, mod, truncdiv, truncmod of int64; over zero it is zero. */
void EmitScalarQuotient(Emitter& e, const IOp& iop);
/*! \brief A reduction of int64, over rows or columns. */
void EmitScalarReduce(Emitter& e, const IOp& iop);

}  // namespace uir::codegen::ascend
