// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/integer_matmul.h"

#include "library/cuda/device.h"

namespace uir::library::cuda {
namespace {

/*! What sizes (but m) and addresses are multiples of: the documentation of cublasLtMatmul, "IMMA kernels". */
constexpr int64_t kMultiple = 4;

void CheckMultiple(int64_t number, const char* what) {
  if (number % kMultiple == 0) return;
  TVM_FFI_THROW(ValueError) << "Library operator integer_matmul on CUDA: " << what << " is " << number
                            << ".\n  limit:  cuBLASLt takes multiples of " << kMultiple
                            << "\n  remedy: add zeros to operands, and let them begin at such addresses";
}

}  // namespace

LtIntegerMatmul::LtIntegerMatmul(const IntegerMatmulAttrs& attrs, int device_id, int64_t alignment)
    : api_(lt::Get()), handle_(lt::HandleOf(device_id)) {
  CheckMultiple(attrs.n, "n");
  CheckMultiple(attrs.k, "k");
  CheckMultiple(alignment, "the alignment of an operand");
  text_ = "a product of int8 of m " + std::to_string(attrs.m) + ", n " + std::to_string(attrs.n) + ", k " +
          std::to_string(attrs.k);
  api_.Check(api_.MatmulDescCreate(&desc_, lt::kCompute32I, lt::kI32), "cublasLtMatmulDescCreate", text_);
  const int32_t transpose = lt::kT;
  api_.Check(api_.MatmulDescSetAttribute(desc_, lt::kTransA, &transpose, sizeof(transpose)),
             "cublasLtMatmulDescSetAttribute", text_);
  a_ = MakeLayout(lt::kI8, attrs.k, attrs.n);
  b_ = MakeLayout(lt::kI8, attrs.k, attrs.m);
  d_ = MakeLayout(lt::kI32, attrs.n, attrs.m);
  choice_ = lt::Choose(handle_, desc_, a_, b_, d_, alignment, text_);
}

LtIntegerMatmul::~LtIntegerMatmul() {
  if (d_) api_.MatrixLayoutDestroy(d_);
  if (b_) api_.MatrixLayoutDestroy(b_);
  if (a_) api_.MatrixLayoutDestroy(a_);
  if (desc_) api_.MatmulDescDestroy(desc_);
}

lt::Layout LtIntegerMatmul::MakeLayout(lt::DataType type, int64_t rows, int64_t columns) const {
  lt::Layout layout = nullptr;
  api_.Check(api_.MatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
             "cublasLtMatrixLayoutCreate", text_);
  return layout;
}

void LtIntegerMatmul::Run(const IntegerMatmulOperands& in) const {
  const DLDevice device = in.out->device;
  void* stream = CurrentStream(device);
  void* workspace = Workspace(device, stream, choice_.workspace_bytes);
  const int32_t alpha = 1, beta = 0;
  char* out = const_cast<char*>(Data(in.out));
  api_.Check(api_.Matmul(handle_, desc_, &alpha, Data(in.b), a_, Data(in.a), b_, &beta, out, d_, out, d_, &choice_.algo,
                         workspace, choice_.workspace_bytes, stream),
             "cublasLtMatmul", text_);
}

}  // namespace uir::library::cuda
