// SPDX-License-Identifier: Apache-2.0
// Printing an elementwise program over tiles in NRAM.
#pragma once

#include <string>
#include <vector>

#include "codegen/bang/emitter.h"
#include "codegen/bang/program.h"

namespace uir::codegen::bang {

//! \brief Prints a program over the target's valid box, as one instruction.
//! \param result What goes to the target, of its dtype.
//! \param sources The operands that inputs name; of the target's shape.
//!
//! Tiles that lie alike are one run of elements, others go row by row; where elements of rows lie apart they are
//! brought together first.  Steps between the first and the last have work buffers, which runs are cut for.
void RunProgram(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<ISlice>& sources);

//! \brief The same over tiles, the target's first; `spares`: what lies outside of the box must stay.
//! Operands that are columns (Program::Column) have one element for a row, in a column of their own; the other tiles
//! are whole and dense then.
void RunOnTiles(Emitter& e, const Program& program, Value result, std::vector<Tile> tiles, const Box& box, bool spares);

/*! \brief `(type *)(address)`, or the address where the type is that of the tile. */
std::string Typed(const std::string& address, const std::string& own, const std::string& wanted);

}  // namespace uir::codegen::bang
