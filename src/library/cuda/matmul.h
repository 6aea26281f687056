// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library/attrs.h"
#include "library/cuda/cublaslt_api.h"
#include "library/dtype.h"
#include "library/matmul.h"

namespace uir::library::cuda {

//! A product as cuBLASLt's column-major problem D = A * B (+ C). A row-major result is computed transposed:
//! out^T = b^T * a^T, so that A is b, B is a, and the bias of the n columns is that of D's rows. `swapped` says so.
struct LtProblem {
  struct Operand {
    bool transposed = false;
    int64_t rows = 0, columns = 0, ld = 0, batch_stride = 0;
    int64_t offset = 0;  // in elements
  };
  bool swapped = true;
  Operand a, b, d;  // C lies as D does
  int64_t batch = 1;
  /*! Batch dimensions beyond the one that the library takes: sizes, and strides of a, b and d. */
  struct Outer {
    int64_t size = 1, a = 0, b = 0, d = 0;
  };
  std::vector<Outer> outer;
};

/*! The problem of the attributes; throws ValueError naming the operand that has no unit stride. */
LtProblem MakeLtProblem(const MatmulAttrs& attrs);

/*! Descriptors, algorithm and workspace of one product: made once, run often, from any thread. */
class LtMatmul {
 public:
  //! `alignment`: of all pointers that it will get, in bytes; `bias`: one that it may get, as the library reads its
  //! alignment. Throws LibraryError where the library has no algorithm.
  LtMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int device_id, int64_t alignment, const void* bias,
           bool tf32);
  ~LtMatmul();
  LtMatmul(const LtMatmul&) = delete;

  void Run(const MatmulData& data, DLDevice device) const;
  size_t workspace_bytes() const { return choice_.workspace_bytes; }
  const LtProblem& problem() const { return problem_; }

 private:
  lt::Layout MakeLayout(const LtProblem::Operand& operand, DType type) const;

  const lt::Api& api_;
  lt::Handle handle_;
  MatmulTypes types_;
  Epilogue epilogue_;
  LtProblem problem_;
  std::string text_;  // for messages
  lt::MatmulDesc desc_ = nullptr;
  lt::Layout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  lt::Choice choice_;
  mutable std::mutex mutex_;  // the bias is part of the descriptor
};

}  // namespace uir::library::cuda
