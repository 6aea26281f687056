// SPDX-License-Identifier: Apache-2.0
// Elementwise pieces that other emitters print too.
#pragma once

#include <string>
#include <vector>

#include "codegen/bang/emitter.h"
#include "codegen/bang/program.h"

namespace uir::codegen::bang {

/*! \brief An empty program for what is printed to a target. */
Program ProgramFor(const Emitter& e, const ISlice& target);
/*! \brief Whether elements of a target come in even numbers, so that bytes may be worked on in pairs. */
bool InPairs(const ISlice& target);
/*! \brief Whether an iOp gives floats of floats, element by element, and has a value. */
bool HasValue(const IOp& iop);
/*! \brief An element of such an iOp's target, of the elements of its sources. */
Value ValueOf(Program& p, const IOp& iop, const std::vector<Value>& sources);

// casts.cc
/*! \brief A float as another float, a narrow integer or bool. */
Value FromFloat(Program& p, Value x, const std::string& to, const std::string& round);

/*! \brief to = name(a, b) of tiles in NRAM of one shape, over the box of `to`; what lies outside may change. */
void BinaryTile(Emitter& e, const std::string& name, const Tile& to, const Tile& a, const Tile& b);
/*! \brief to = from, converted, over a box of both; what lies outside of it stays if `spares`. */
void ConvertTile(Emitter& e, const Tile& to, const Tile& from, const Box& box, bool spares);

}  // namespace uir::codegen::bang
