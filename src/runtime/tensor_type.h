// SPDX-License-Identifier: Apache-2.0
// What is known of a tensor before there is one.
#pragma once

#include <dlpack/dlpack.h>
#include <tvm/ffi/container/shape.h>

#include <cstdint>

namespace uir::runtime {

/*! \brief Shape and type of a tensor. */
struct TensorType {
  tvm::ffi::Shape shape;
  DLDataType dtype{};

  int64_t bytes() const { return (shape.Product() * dtype.bits * dtype.lanes + 7) / 8; }
};

/*! \brief Where memory of tensors begins: what kernels load by whole vectors. */
constexpr int64_t kDataAlignment = 64;

}  // namespace uir::runtime
