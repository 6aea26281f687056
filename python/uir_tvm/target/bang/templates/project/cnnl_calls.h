// SPDX-License-Identifier: Apache-2.0
// Products and convolutions by CNNL, queued on one queue. Every descriptor is released by the object that holds it, and
// the result of every call is checked.
#ifndef PROJECT_CNNL_CALLS_H_
#define PROJECT_CNNL_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cnnl.h"
#include "cnrt.h"

namespace project {

/*!
 * A view of a tensor in device memory: a transpose, a slice or a repeated dimension is strides and an offset, in
 * elements, into what lies at `data`.
 */
class View {
 public:
  View(void* data, cnnlDataType_t type, const std::vector<int>& shape, const std::vector<int>& strides,
       int64_t offset = 0);
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  cnnlTensorDescriptor_t get() const { return descriptor_; }
  void* data() const { return data_; }

 private:
  cnnlTensorDescriptor_t descriptor_ = nullptr;
  void* data_;
};

/*! A contiguous tensor of four dimensions in NCHW (weights: OIHW). */
struct Image {
  void* data;
  int n, c, h, w;
};

/*! A convolution's parameters, of rows and of columns. */
struct Window {
  int stride[2];
  int padding[2];
  int dilation[2];
  int groups;
};

/*! Sizes of products of matrices: out[p, m, n] = sum over k of a[p, m, k] * b[p, n, k]. */
struct Matrices {
  int parts, m, n, k;
};

/*! The library on one queue. Operators of one queue run one after the other, so that all share one workspace. */
class Library {
 public:
  explicit Library(cnrtQueue_t queue);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /*! out = alpha a @ b; all dimensions but the last two are a batch that broadcasts. */
  void Product(float alpha, const View& a, const View& b, const View& out);

  /*! The products of contiguous matrices of int8, of numbers as they stand, in float: exact up to 2^24. */
  void IntegerProduct(void* a, void* b, void* out, const Matrices& sizes);

  /*! out = convolution of x with weight; CNNL wants NHWC, so that all three are transposed. */
  void Convolution(cnnlDataType_t type, const Image& x, const Image& weight, const Window& window, const Image& out);

 private:
  /*! At least `bytes` of device memory; null for 0. It only grows. */
  char* Workspace(size_t bytes);

  cnrtQueue_t queue_;
  cnnlHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
};

}  // namespace project

#endif  // PROJECT_CNNL_CALLS_H_
