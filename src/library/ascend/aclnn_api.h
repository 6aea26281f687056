// SPDX-License-Identifier: Apache-2.0
// The functions of aclnn that library operators use, loaded when they are first used.
//
// Declared here rather than included, so that the library builds and loads where there is no toolkit. Where each was
// checked: python/uir_tvm/target/ascend/project_names.json.
#pragma once

#include <cstdint>
#include <string>

namespace uir::library::ascend::aclnn {

using Status = int32_t;
using Tensor = void*;
using Scalar = void*;
using IntArray = void*;
using Executor = void*;
using Stream = void*;

/*! \brief Values of aclDataType and aclFormat. */
constexpr int kFloat = 0, kFloat16 = 1, kInt8 = 2, kInt32 = 3, kBf16 = 27;
constexpr int kNchw = 0, kNd = 2;
/*! \brief cubeMathType KEEP_DTYPE: products of float are not rounded to HFLOAT32. */
constexpr int8_t kKeepDtype = 0;

/*! \brief The second phase of every operator. */
using Run = Status (*)(void* workspace, uint64_t bytes, Executor executor, Stream stream);
using MatmulSize = Status (*)(Tensor a, Tensor b, Tensor out, int8_t math, uint64_t* bytes, Executor* executor);
using AddSize = Status (*)(Tensor term, Tensor a, Tensor b, Scalar beta, Scalar alpha, Tensor out, int8_t math,
                           uint64_t* bytes, Executor* executor);
using ConvolutionSize = Status (*)(Tensor x, Tensor weight, Tensor bias, IntArray stride, IntArray padding,
                                   IntArray dilation, bool transposed, IntArray output_padding, int64_t groups,
                                   Tensor out, int8_t math, uint64_t* bytes, Executor* executor);

using QuantMatmulSize = Status (*)(Tensor x1, Tensor x2, Tensor scale, Tensor offset, Tensor per_token_scale,
                                   Tensor bias, bool transpose_x1, bool transpose_x2, Tensor out, uint64_t* bytes,
                                   Executor* executor);

/*! \brief The functions, by their names without `acl`. */
struct Api {
  Tensor (*CreateTensor)(const int64_t* dims, uint64_t num_dims, int type, const int64_t* strides, int64_t offset,
                         int format, const int64_t* storage, uint64_t num_storage, void* data) = nullptr;
  Status (*DestroyTensor)(Tensor tensor) = nullptr;
  Scalar (*CreateScalar)(void* value, int type) = nullptr;
  Status (*DestroyScalar)(Scalar scalar) = nullptr;
  IntArray (*CreateIntArray)(const int64_t* values, uint64_t size) = nullptr;
  Status (*DestroyIntArray)(IntArray array) = nullptr;
  MatmulSize MatmulGetWorkspaceSize = nullptr;
  AddSize AddmmGetWorkspaceSize = nullptr;
  AddSize BaddbmmGetWorkspaceSize = nullptr;
  ConvolutionSize ConvolutionGetWorkspaceSize = nullptr;
  Run Matmul = nullptr, Addmm = nullptr, Baddbmm = nullptr, Convolution = nullptr;
};

//! \brief The library.
//! \throws LibraryError There is none, or one without a function.
const Api& Get();

/*! \brief The functions of products of bytes, which older releases do not have. */
struct QuantApi {
  QuantMatmulSize QuantMatmulV4GetWorkspaceSize = nullptr;
  Run QuantMatmulV4 = nullptr;
};

//! \brief The same for them.
const QuantApi& GetQuant();

/*! \brief Throws LibraryError, with the runtime's words, unless a call succeeded. */
void Check(Status status, const char* call);

}  // namespace uir::library::ascend::aclnn
