// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "library/attrs.h"
#include "library/cuda/cublaslt_api.h"
#include "library/integer_matmul.h"

namespace uir::library::cuda {

//! Descriptors, algorithm and workspace of one product of int8 into int32: made once, run often, from any thread. The
//! library's tensor cores take A transposed and B as it is, by columns: the result is computed transposed, so that A is
//! b and B is a, both as they lie.
class LtIntegerMatmul {
 public:
  //! `alignment`: of all pointers that it will get, in bytes. Throws ValueError for sizes that the library does not
  //! take, LibraryError where it has no algorithm.
  LtIntegerMatmul(const IntegerMatmulAttrs& attrs, int device_id, int64_t alignment);
  ~LtIntegerMatmul();
  LtIntegerMatmul(const LtIntegerMatmul&) = delete;

  void Run(const IntegerMatmulOperands& in) const;

 private:
  lt::Layout MakeLayout(lt::DataType type, int64_t rows, int64_t columns) const;

  const lt::Api& api_;
  lt::Handle handle_;
  std::string text_;  // for messages
  lt::MatmulDesc desc_ = nullptr;
  lt::Layout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  lt::Choice choice_;
};

}  // namespace uir::library::cuda
