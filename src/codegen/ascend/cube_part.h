// SPDX-License-Identifier: Apache-2.0
/*!
 * \file cube_part.h
 * \brief What the cube core of a block does in a kernel with products: the same loops, with the contractions alone.
 */
#ifndef UIR_CODEGEN_ASCEND_CUBE_PART_H_
#define UIR_CODEGEN_ASCEND_CUBE_PART_H_

#include "../printer.h"
#include "emitter.h"
#include "products.h"

namespace uir {
namespace codegen {
namespace ascend {

/*! \brief Memories of the cube core, their tensors, loops, contractions and syncs. */
void PrintCubePart(Plan* plan, const Products& products, Printer* out);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_CUBE_PART_H_
