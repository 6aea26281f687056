// SPDX-License-Identifier: Apache-2.0
// The part of cuDNN's C interface that is used, bound when it is first needed.
// Prototypes and enumerators: cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h of cuDNN 9 (deprecated there in favour of the
// graph interface, and kept; cuDNN 8 has the same). Convolutions come from cuDNN rather than from an unfolded input and
// a matrix product, because the unfolded input of a 3x3 window is nine times the input in memory traffic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/vendor_library.h"

namespace uir::library::cuda::dnn {

using Handle = struct CudnnHandleTag*;
using Tensor = struct CudnnTensorTag*;
using Filter = struct CudnnFilterTag*;
using Convolution = struct CudnnConvolutionTag*;
using Activation = struct CudnnActivationTag*;

struct AlgoPerf {
  int algo;
  int status;
  float time;
  size_t memory;
  int determinism;
  int math_type;
  int reserved[3];
};

// cudnnDataType_t
enum DataType : int { kF32 = 0, kF16 = 2, kBF16 = 9 };
// cudnnTensorFormat_t, cudnnConvolutionMode_t, cudnnNanPropagation_t
enum Format : int { kNCHW = 0 };
enum Mode : int { kCrossCorrelation = 1 };
enum Nan : int { kPropagateNan = 1 };
// cudnnMathType_t
enum MathType : int { kTensorOp = 1, kFma = 3 };
// cudnnActivationMode_t
enum ActivationMode : int { kRelu = 1, kIdentity = 5 };
// cudnnConvolutionFwdAlgo_t: the only one that takes the identity as activation
enum Algo : int { kImplicitPrecompGemm = 1 };

#define UIR_CUDNN_FUNCTIONS(F)                                                                                       \
  F(Create, int(Handle*))                                                                                            \
  F(GetVersion, size_t())                                                                                            \
  F(GetErrorString, const char*(int))                                                                                \
  F(SetStream, int(Handle, void*))                                                                                   \
  F(CreateTensorDescriptor, int(Tensor*))                                                                            \
  F(DestroyTensorDescriptor, int(Tensor))                                                                            \
  F(SetTensor4dDescriptor, int(Tensor, Format, DataType, int, int, int, int))                                        \
  F(CreateFilterDescriptor, int(Filter*))                                                                            \
  F(DestroyFilterDescriptor, int(Filter))                                                                            \
  F(SetFilter4dDescriptor, int(Filter, DataType, Format, int, int, int, int))                                        \
  F(CreateConvolutionDescriptor, int(Convolution*))                                                                  \
  F(DestroyConvolutionDescriptor, int(Convolution))                                                                  \
  F(SetConvolution2dDescriptor, int(Convolution, int, int, int, int, int, int, Mode, DataType))                      \
  F(SetConvolutionGroupCount, int(Convolution, int))                                                                 \
  F(SetConvolutionMathType, int(Convolution, MathType))                                                              \
  F(GetConvolutionForwardAlgorithm_v7, int(Handle, Tensor, Filter, Convolution, Tensor, int, int*, AlgoPerf*))       \
  F(GetConvolutionForwardWorkspaceSize, int(Handle, Tensor, Filter, Convolution, Tensor, int, size_t*))              \
  F(ConvolutionForward, int(Handle, const void*, Tensor, const void*, Filter, const void*, Convolution, int, void*,  \
                            size_t, const void*, Tensor, void*))                                                     \
  F(ConvolutionBiasActivationForward,                                                                                \
    int(Handle, const void*, Tensor, const void*, Filter, const void*, Convolution, int, void*, size_t, const void*, \
        Tensor, const void*, Tensor, const void*, Activation, Tensor, void*))                                        \
  F(CreateActivationDescriptor, int(Activation*))                                                                    \
  F(DestroyActivationDescriptor, int(Activation))                                                                    \
  F(SetActivationDescriptor, int(Activation, ActivationMode, Nan, double))                                           \
  F(AddTensor, int(Handle, const void*, Tensor, const void*, const void*, Tensor, void*))                            \
  F(ActivationForward, int(Handle, Activation, const void*, Tensor, const void*, const void*, Tensor, void*))

struct Api {
#define UIR_CUDNN_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  UIR_CUDNN_FUNCTIONS(UIR_CUDNN_MEMBER)
#undef UIR_CUDNN_MEMBER

  /*! Throw LibraryError naming the call unless `status` is success. */
  void Check(int status, const char* call, const std::string& problem = "") const;
};

VendorLibrary& Shared();

/*! All functions; throws LibraryError where the library is missing. */
const Api& Get();

/*! A handle of the current device and this thread: a handle carries its stream, so threads do not share one. */
Handle HandleOf(int device_id);

}  // namespace uir::library::cuda::dnn
