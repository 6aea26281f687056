// SPDX-License-Identifier: Apache-2.0
// A product of the kernel graph as calls of aclnn: which function, on which views.
//
//   no term to add                     aclnnMatmul, with up to three batch dimensions that broadcast
//   a bias or a residual, one matrix   aclnnAddmm
//   a bias or a residual, a batch      aclnnBaddbmm, once for each outer index where batches do not join
//
// The documents that the functions were checked in: python/uir_tvm/target/ascend/project_names.json.
#pragma once

#include <vector>

#include "library/product_views.h"

namespace uir::library::ascend {

enum class Function { kMatmul, kAddmm, kBaddbmm };

/*! \brief One call: (a, b, out), or (term, a, b, out) where there is one. */
struct Product {
  Function function;
  std::vector<Operand> operands;
};

//! \brief The calls that compute a product.
//! \throws ValueError A factor, an activation, a packed weight, or more than one term to add: the table of the target's
//!  library (`uir_tvm.target.ascend.library.TABLE`) has none of these.
std::vector<Product> Products(const MatmulAttrs& attrs);

/*! \brief Throws ValueError for an epilogue that a convolution does not have: anything but a bias. */
void CheckConvolution(const Conv2dAttrs& attrs);

}  // namespace uir::library::ascend
