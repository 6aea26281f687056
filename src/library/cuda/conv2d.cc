// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/conv2d.h"

#include <tvm/ffi/error.h>

#include "library/cuda/device.h"

namespace uir::library::cuda {
namespace {

dnn::DataType DnnType(DType type) {
  switch (type) {
    case DType::kF16:
      return dnn::kF16;
    case DType::kBF16:
      return dnn::kBF16;
    case DType::kF32:
      return dnn::kF32;
    case DType::kF64:
      break;
  }
  TVM_FFI_THROW(ValueError) << "Library operator conv2d on CUDA: float64.\n  limit:  float16, bfloat16 and float32"
                            << "\n  remedy: compute it in a kernel of its own";
  TVM_FFI_UNREACHABLE();
}

void CheckForm(const Conv2dAttrs& attrs) {
  if (attrs.padding[0] != attrs.padding[2] || attrs.padding[1] != attrs.padding[3]) {
    TVM_FFI_THROW(ValueError) << "Library operator conv2d on CUDA: padding that differs between opposite sides.\n"
                              << "  limit:  cuDNN pads both alike\n  remedy: pad the input before the convolution";
  }
  const Epilogue& epilogue = attrs.epilogue;
  if (epilogue.activation != Activation::kNone && epilogue.activation != Activation::kRelu) {
    TVM_FFI_THROW(ValueError) << "Library operator conv2d on CUDA: an activation that cuDNN does not fuse.\n"
                              << "  limit:  none, relu\n  remedy: compute it in a kernel after the convolution";
  }
  if (epilogue.residual == Residual::kAfterActivation && epilogue.activation != Activation::kNone) {
    TVM_FFI_THROW(ValueError) << "Library operator conv2d on CUDA: a residual after an activation.\n"
                              << "  limit:  cuDNN adds it before\n  remedy: add it in a kernel after the convolution";
  }
}

}  // namespace

DnnConv2d::DnnConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int device_id, bool tf32)
    : api_(dnn::Get()), epilogue_(attrs.epilogue) {
  CheckForm(attrs);
  text_ = "a conv2d of (" + std::to_string(attrs.n) + ", " + std::to_string(attrs.c) + ", " + std::to_string(attrs.h) +
          ", " + std::to_string(attrs.w) + ") with (" + std::to_string(attrs.o) + ", " + std::to_string(attrs.i) +
          ", " + std::to_string(attrs.kh) + ", " + std::to_string(attrs.kw) + ")";
  auto check = [this](int status, const char* call) { api_.Check(status, call, text_); };
  x_ = MakeTensor(DnnType(types.x), attrs.n, attrs.c, attrs.h, attrs.w);
  y_ = MakeTensor(DnnType(types.out), attrs.n, attrs.o, attrs.oh, attrs.ow);
  bias_ = MakeTensor(DnnType(types.out), 1, attrs.o, 1, 1);
  check(api_.CreateFilterDescriptor(&w_), "cudnnCreateFilterDescriptor");
  check(api_.SetFilter4dDescriptor(w_, DnnType(types.w), dnn::kNCHW, static_cast<int>(attrs.o),
                                   static_cast<int>(attrs.i), static_cast<int>(attrs.kh), static_cast<int>(attrs.kw)),
        "cudnnSetFilter4dDescriptor");
  check(api_.CreateConvolutionDescriptor(&convolution_), "cudnnCreateConvolutionDescriptor");
  check(api_.SetConvolution2dDescriptor(convolution_, static_cast<int>(attrs.padding[0]),
                                        static_cast<int>(attrs.padding[1]), static_cast<int>(attrs.stride[0]),
                                        static_cast<int>(attrs.stride[1]), static_cast<int>(attrs.dilation[0]),
                                        static_cast<int>(attrs.dilation[1]), dnn::kCrossCorrelation, dnn::kF32),
        "cudnnSetConvolution2dDescriptor");
  check(api_.SetConvolutionGroupCount(convolution_, static_cast<int>(attrs.groups)), "cudnnSetConvolutionGroupCount");
  // Tensor cores take half types as they are; float32 they round to TF32, which must be allowed.
  const bool fma = types.x == DType::kF32 && !tf32;
  check(api_.SetConvolutionMathType(convolution_, fma ? dnn::kFma : dnn::kTensorOp), "cudnnSetConvolutionMathType");
  check(api_.CreateActivationDescriptor(&activation_), "cudnnCreateActivationDescriptor");
  const bool relu = epilogue_.activation == Activation::kRelu;
  check(api_.SetActivationDescriptor(activation_, relu ? dnn::kRelu : dnn::kIdentity, dnn::kPropagateNan, 0.0),
        "cudnnSetActivationDescriptor");
  dnn::Handle handle = dnn::HandleOf(device_id);
  if (fused() && !relu) {
    algo_ = dnn::kImplicitPrecompGemm;
  } else {
    dnn::AlgoPerf best{};
    int found = 0;
    check(api_.GetConvolutionForwardAlgorithm_v7(handle, x_, w_, convolution_, y_, 1, &found, &best),
          "cudnnGetConvolutionForwardAlgorithm_v7");
    if (found == 0)
      ThrowLibraryError("cuDNN has no algorithm for " + text_ + ".", "another type or shape",
                        "compute the convolution in a kernel of its own");
    check(best.status, "the algorithm of cudnnGetConvolutionForwardAlgorithm_v7");
    algo_ = best.algo;
  }
  check(api_.GetConvolutionForwardWorkspaceSize(handle, x_, w_, convolution_, y_, algo_, &workspace_),
        "cudnnGetConvolutionForwardWorkspaceSize");
}

DnnConv2d::~DnnConv2d() {
  if (activation_) api_.DestroyActivationDescriptor(activation_);
  if (convolution_) api_.DestroyConvolutionDescriptor(convolution_);
  if (w_) api_.DestroyFilterDescriptor(w_);
  for (dnn::Tensor tensor : {x_, y_, bias_}) {
    if (tensor) api_.DestroyTensorDescriptor(tensor);
  }
}

dnn::Tensor DnnConv2d::MakeTensor(dnn::DataType type, int64_t n, int64_t c, int64_t h, int64_t w) const {
  dnn::Tensor tensor = nullptr;
  api_.Check(api_.CreateTensorDescriptor(&tensor), "cudnnCreateTensorDescriptor", text_);
  api_.Check(api_.SetTensor4dDescriptor(tensor, dnn::kNCHW, type, static_cast<int>(n), static_cast<int>(c),
                                        static_cast<int>(h), static_cast<int>(w)),
             "cudnnSetTensor4dDescriptor", text_);
  return tensor;
}

void DnnConv2d::Run(const Conv2dData& data, DLDevice device) const {
  dnn::Handle handle = dnn::HandleOf(device.device_id);
  void* stream = CurrentStream(device);
  void* workspace = Workspace(device, stream, workspace_);
  const auto alpha = static_cast<float>(epilogue_.alpha);
  const float one = 1.0f, zero = 0.0f;
  api_.Check(api_.SetStream(handle, stream), "cudnnSetStream", text_);
  if (fused()) {
    const float* keep = data.residual ? &one : &zero;
    api_.Check(api_.ConvolutionBiasActivationForward(
                   handle, &alpha, x_, data.x, w_, data.w, convolution_, algo_, workspace, workspace_, keep, y_,
                   data.residual ? data.residual : data.out, bias_, data.bias, activation_, y_, data.out),
               "cudnnConvolutionBiasActivationForward", text_);
    return;
  }
  api_.Check(api_.ConvolutionForward(handle, &alpha, x_, data.x, w_, data.w, convolution_, algo_, workspace, workspace_,
                                     &zero, y_, data.out),
             "cudnnConvolutionForward", text_);
  if (data.residual) {
    api_.Check(api_.AddTensor(handle, &one, y_, data.residual, &one, y_, data.out), "cudnnAddTensor", text_);
  }
  if (epilogue_.activation == Activation::kRelu) {
    api_.Check(api_.ActivationForward(handle, activation_, &one, y_, data.out, &zero, y_, data.out),
               "cudnnActivationForward", text_);
  }
}

}  // namespace uir::library::cuda
