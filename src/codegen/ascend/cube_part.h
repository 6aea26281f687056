// SPDX-License-Identifier: Apache-2.0
/*!
 * \file cube_part.h
 * \brief What the cube core of a block does in a kernel with products: the same loops, with the contractions alone.
 */
#ifndef UIR_CODEGEN_ASCEND_CUBE_PART_H_
#define UIR_CODEGEN_ASCEND_CUBE_PART_H_

#include <string>
#include <vector>

#include "../printer.h"
#include "emitter.h"
#include "products.h"

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief Memories of the cube core, their tensors, loops, contractions and syncs.
 * \param first Number in the file of the printer's first line.
 * \return Notes on the syncs.
 */
std::vector<std::string> PrintCubePart(Plan* plan, const Products& products, int64_t first, Printer* out);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_CUBE_PART_H_
