// SPDX-License-Identifier: Apache-2.0
/*!
 * \file reduce.h
 * \brief Reductions within a core.
 */
#ifndef UIR_CODEGEN_BANG_REDUCE_H_
#define UIR_CODEGEN_BANG_REDUCE_H_

#include <string>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*!
 * \brief to = the box of `from` reduced by add, mul, max or min; the identity where the box is empty.
 * \param axis "row": each row over its columns, to (R, 1); "col": each column over its rows, to (1, C).
 *
 * Floats are computed in fp32 and rounded once.  Sums and products are trees: halves onto each other until one is left.
 */
void ReduceTile(Emitter& e, const Tile& to, const Tile& from, const std::string& op, const std::string& axis);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_REDUCE_H_
