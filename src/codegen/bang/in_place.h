// SPDX-License-Identifier: Apache-2.0
// Which operands of a vector function may lie where its target does: "homologous operands" of the vendor's
// header, and what public kernels do.
#pragma once

#include "codegen/tiles/program.h"

namespace uir::codegen::bang {

enum class InPlace {
  kAny,    // any of them, or several
  kFirst,  // the first alone
  kNone
};

InPlace InPlaceOf(const tiles::Step& step);

/*! \brief Whether a function that takes its first operand alone gives the same with its two operands exchanged. */
bool Commutes(const tiles::Step& step);

}  // namespace uir::codegen::bang
