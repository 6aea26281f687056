// SPDX-License-Identifier: Apache-2.0
// Elementwise iOps that stand one after another, printed as one program.
//
// What one of them leaves for the next alone is never stored: it stays in a work buffer of a chunk, functions draw the
// next operation into themselves, and a column that is repeated along rows is a number for each row.
#pragma once

#include <vector>

#include "codegen/bang/emitter.h"

namespace uir::codegen::bang {

//! \brief The longest chain that begins at an item of a body; empty where there is none of two iOps.
//! \param position Of that item (`Use::position`).
std::vector<IOp> ChainAt(const Emitter& e, const ffi::Array<ffi::ObjectRef>& body, size_t at, int position);

/*! \brief Prints a chain; the emitter stands at its last iOp. */
void EmitChain(Emitter& e, const std::vector<IOp>& chain);

}  // namespace uir::codegen::bang
