// SPDX-License-Identifier: Apache-2.0
// Which iOps this device prints as one program (tiles/chain.h), and how.
#pragma once

#include <vector>

#include "codegen/bang/emitter.h"
#include "codegen/tiles/chain.h"

namespace uir::codegen::bang {

extern const tiles::ChainRules kChains;

/*! \brief Prints a chain; the emitter stands at its last iOp. */
void EmitChain(Emitter& e, const std::vector<IOp>& chain);

}  // namespace uir::codegen::bang
