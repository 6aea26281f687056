// SPDX-License-Identifier: Apache-2.0
// Library operators on an Ascend device: calls of aclnn on TVM's stream.
#pragma once

#include "library/arguments.h"
#include "library/integer_matmul.h"

namespace uir::library::ascend {

/*! \brief Queues a product of tensors on a device.  \throws LibraryError aclnn is missing or refuses it. */
void RunMatmul(const MatmulAttrs& attrs, const Arguments& in);

/*! \brief Queues a convolution of tensors on a device.  \throws LibraryError aclnn is missing or refuses it. */
void RunConv2d(const Conv2dAttrs& attrs, const Arguments& in);

/*! \brief Queues a product of int8 into int32 on a device.  \throws LibraryError aclnn is missing or refuses it. */
void RunIntegerMatmul(const IntegerMatmulAttrs& attrs, const IntegerMatmulOperands& in);

}  // namespace uir::library::ascend
