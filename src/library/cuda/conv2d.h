// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "library/attrs.h"
#include "library/conv2d.h"
#include "library/cuda/cudnn_api.h"

namespace uir::library::cuda {

/*! Descriptors, algorithm and workspace of one convolution in NCHW: made once, run often, from any thread. */
class DnnConv2d {
 public:
  /*! Throws ValueError for what cuDNN has no form for, LibraryError where it has no algorithm. */
  DnnConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int device_id, bool tf32);
  ~DnnConv2d();
  DnnConv2d(const DnnConv2d&) = delete;

  void Run(const Conv2dData& data, DLDevice device) const;
  int algorithm() const { return algo_; }
  size_t workspace_bytes() const { return workspace_; }

 private:
  dnn::Tensor MakeTensor(dnn::DataType type, int64_t n, int64_t c, int64_t h, int64_t w) const;
  /*! Convolution, bias, residual and activation in one call. */
  bool fused() const { return epilogue_.bias; }

  const dnn::Api& api_;
  Epilogue epilogue_;
  std::string text_;  // for messages
  dnn::Tensor x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  dnn::Filter w_ = nullptr;
  dnn::Convolution convolution_ = nullptr;
  dnn::Activation activation_ = nullptr;
  int algo_ = 0;
  size_t workspace_ = 0;
};

}  // namespace uir::library::cuda
