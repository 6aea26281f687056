// SPDX-License-Identifier: Apache-2.0
// Memory of results: what a caller gave back is used again, up to a limit.
#pragma once

#include <dlpack/dlpack.h>
#include <tvm/ffi/container/tensor.h>

#include <cstdint>

namespace uir::runtime {

/*! \brief A tensor in the host's memory, aligned to vectors, whose values are not set. */
tvm::ffi::Tensor NewResult(const tvm::ffi::Shape& shape, DLDataType dtype);

/*! \brief Bytes that nobody uses and that are kept. */
int64_t KeptBytes();

}  // namespace uir::runtime
