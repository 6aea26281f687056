// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "library/attrs.h"
#include "library/conv2d_tile_kernels.h"
#include "library/dtype.h"
#include "library/packed_weight.h"

namespace uir::library {

/*! Types of the operands; bias and residual have the output's. */
struct MatmulTypes {
  DType a = DType::kF32, b = DType::kF32, out = DType::kF32;
};

/*! First bytes of the operands; `b` is the body of a packed weight where the
 * plan has a format. */
struct MatmulData {
  const char* a = nullptr;
  const char* b = nullptr;
  const char* bias = nullptr;
  const char* residual = nullptr;
  char* out = nullptr;
};

/*! Everything about one product that does not depend on the data: made once,
 * run often, from any thread. */
class MatmulPlan {
 public:
  virtual ~MatmulPlan() = default;
  virtual void Run(const MatmulData& data) const = 0;
  /*! How the constant weight must be packed; only for attributes with packed =
   * true. */
  virtual const WeightFormat* weight_format() const = 0;
  /*! JSON: implementation and split, for reports and tests. */
  virtual std::string Describe() const = 0;
};

enum class Threading { kPool, kOpenMP };

/*! The library's plan where it has fast code for the types and layouts, else
 * the plain one. */
std::unique_ptr<MatmulPlan> MakeMatmulPlan(const MatmulAttrs& attrs, const MatmulTypes& types, int threads,
                                           Threading threading);

/*! Few rows by a constant matrix, or a matrix of few columns, in tiles of our own; null for others, and where the CPU
 * has no AVX2. */
std::unique_ptr<MatmulPlan> MakeTiledMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads);

/*! Whether tiles of our own compute it for any number of rows: float32, a packed weight, one matrix of rows. */
bool HasPanels(const MatmulAttrs& attrs, const MatmulTypes& types);

/*! What `HasPanels` says; null for others. */
std::unique_ptr<MatmulPlan> MakePanelMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads);

/*! On oneDNN; null where only its reference code would serve. */
std::unique_ptr<MatmulPlan> MakeDirectMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads,
                                             Threading threading);

//! All float16, or bfloat16 where oneDNN has no instructions for it, the weight packed; null for others, and without
//! AVX2 and instructions for float16.
std::unique_ptr<MatmulPlan> MakeHalfMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads);

/*! Operands gathered into contiguous float32, oneDNN's product, results
 * scattered; null without the library. */
std::unique_ptr<MatmulPlan> MakeStagedMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads);

/*! Blocked loops in C++: any type, any strides, no library. */
std::unique_ptr<MatmulPlan> MakePlainMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads);

//! Elements from one row of a packed [k, n] weight to the next where the library wants no blocks. Wide rows get an odd
//! number of cache lines: with a multiple of 2 KiB the rows of a column tile fall into the same few sets of the cache,
//! and oneDNN's AVX2 product runs at half its speed (docs/library-operators.md).
int64_t PackedRowStride(int64_t n, DType type);

/*! The weight as a plan without blocked layouts wants it: [k, n] with `PackedRowStride`. */
WeightFormat PlainMatmulFormat(const MatmulAttrs& attrs, DType type);

/*! A weight [k, n] in panels of as many columns as tiles take (`TilePanels`), [k, columns]. */
WeightFormat MatrixPanels(const TileKernels& kernels, int64_t k, int64_t n);

/*! Batch dimensions that follow each other in all operands become one, and
 * those that b does not have become rows. */
MatmulAttrs Collapse(MatmulAttrs attrs);

/*! A product with a packed weight, its batch as further rows where it is one matrix of them. */
MatmulAttrs RowsOf(const MatmulAttrs& attrs, const MatmulTypes& types);

/*! The attributes with b replaced by the weight in `PlainMatmulFormat`, shared by the batch. */
MatmulAttrs WithPackedWeight(MatmulAttrs attrs, DType type);

/*! One primitive; `batch` may be empty. Null where the library has none for
 * these types. */
std::unique_ptr<Kernel> MakeMatmulKernel(const std::vector<int64_t>& batch, int64_t m, int64_t n, int64_t k,
                                         const MatmulTypes& types, const OperandView& a, const dnn::MdTag* b,
                                         const OperandView& out, const Epilogue& epilogue);

}  // namespace uir::library
