// SPDX-License-Identifier: Apache-2.0
/*!
 * \file in_place.h
 * \brief Which operands of a vector function may lie where its target does: "homologous operands" of the vendor's
 * header, and what public kernels do.
 */
#ifndef UIR_CODEGEN_BANG_IN_PLACE_H_
#define UIR_CODEGEN_BANG_IN_PLACE_H_

#include "../tiles/program.h"

namespace uir {
namespace codegen {
namespace bang {

enum class InPlace {
  kAny,    // any of them, or several
  kFirst,  // the first alone
  kNone
};

InPlace InPlaceOf(const tiles::Step& step);

/*! \brief Whether a function that takes its first operand alone gives the same with its two operands exchanged. */
bool Commutes(const tiles::Step& step);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_IN_PLACE_H_
