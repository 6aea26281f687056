// SPDX-License-Identifier: Apache-2.0
/*!
 * \file staged.h
 * \brief Whether all of a slice in shared memory was filled, also what a product reads beyond its result's box.
 */
#ifndef UIR_CODEGEN_CUDA_STAGED_H_
#define UIR_CODEGEN_CUDA_STAGED_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace cuda {

/*!
 * \brief Whether every element of a slice, its bounds and those of other operands left aside, is one that whole
 * moves into the tile filled: each row of the slice ends within a row of the tile, its last row within those filled.
 */
bool IsFilled(const std::vector<Use>& uses, const Scope& scope, const ISlice& slice);

}  // namespace cuda
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_CUDA_STAGED_H_
