// SPDX-License-Identifier: Apache-2.0
// What callers give: tensors of the host with any strides.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

#include "runtime/tensor_type.h"

namespace uir::runtime {

/*! \brief Whether a tensor lies in the host's memory, and has a shape and type. */
bool Fits(const DLTensor& tensor, const TensorType& type);

/*! \brief Whether it has no elements. */
bool IsEmpty(const DLTensor& tensor);

/*! \brief Whether functions can use its memory: without gaps, aligned to vectors. */
bool IsReady(const DLTensor& tensor);

/*! \brief Whether it has no gaps and may be copied as it is. Tensors that lie at odd places, or have strides, may be
 * views whose meaning is not in their bytes (torch's negated parts of complex numbers): their owner copies them. */
bool IsPlain(const DLTensor& tensor);

/*! \brief Copies elements; both have one shape and type, and any strides. */
void CopyElements(const DLTensor& from, const DLTensor& to);

/*! \brief Whether two tensors may have bytes in common. */
bool MayMeet(const DLTensor& a, const DLTensor& b);

}  // namespace uir::runtime
