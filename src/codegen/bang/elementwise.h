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
#include "program.h"

namespace uir {
namespace codegen {
namespace bang {

/*! \brief An empty program for what is printed. */
Program ProgramFor(const Emitter& e);
/*! \brief Whether an iOp gives floats of floats, element by element, and has a value. */
bool HasValue(const IOp& iop);
/*! \brief An element of such an iOp's target, of the elements of its sources. */
Value ValueOf(Program& p, const IOp& iop, const std::vector<Value>& sources);

// casts.cc
/*! \brief How a cast rounds; empty: by its dtypes. */
std::string RoundOf(const IOp& iop);
/*! \brief A float as another float, a narrow integer or bool. */
Value FromFloat(Program& p, Value x, const std::string& to, const std::string& round);

/*! \brief to = name(a, b) of tiles in NRAM of one shape, over the box of `to`; what lies outside may change. */
void BinaryTile(Emitter& e, const std::string& name, const Tile& to, const Tile& a, const Tile& b);
/*! \brief to = from, converted, over a box of both; what lies outside of it stays if `spares`. */
void ConvertTile(Emitter& e, const Tile& to, const Tile& from, const Box& box, bool spares);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_ELEMENTWISE_H_
