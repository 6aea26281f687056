// SPDX-License-Identifier: Apache-2.0
#include "cnnl_calls.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace project {
namespace {

std::string Message(cnnlStatus_t status, const char* call) {
  return std::string(call) + " failed: " + cnnlGetErrorString(status);
}

std::string Message(cnrtRet_t status, const char* call) {
  return std::string(call) + " failed: " + cnrtGetErrorStr(status);
}

bool Good(cnnlStatus_t status) { return status == CNNL_STATUS_SUCCESS; }
bool Good(cnrtRet_t status) { return status == cnrtSuccess; }

template <typename Status>
void Check(Status status, const char* call) {
  if (!Good(status)) throw std::runtime_error(Message(status, call));
}
#define CHECK(call) Check((call), #call)

/*! In destructors, which must not throw: a failure is said, and the rest is released all the same. */
template <typename Status>
void CheckQuietly(Status status, const char* call) {
  if (!Good(status)) std::fprintf(stderr, "%s\n", Message(status, call).c_str());
}
#define RELEASE(call) CheckQuietly((call), #call)

/*! A descriptor, made by one function of CNNL and destroyed by another. */
template <typename Handle>
class Owned {
 public:
  using Destroy = cnnlStatus_t (*)(Handle);
  Owned(cnnlStatus_t (*create)(Handle*), Destroy destroy) : destroy_(destroy) {
    Check(create(&handle_), "the creation of a descriptor");
  }
  ~Owned() { CheckQuietly(destroy_(handle_), "the release of a descriptor"); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  Handle get() const { return handle_; }
  /*! Where CNNL puts one of several. */
  Handle* address() { return &handle_; }

 private:
  Handle handle_{};
  Destroy destroy_;
};

size_t Bytes(cnnlDataType_t type) { return type == CNNL_DTYPE_FLOAT ? 4 : 2; }

size_t Elements(const Image& image) {
  return static_cast<size_t>(image.n) * static_cast<size_t>(image.c) * static_cast<size_t>(image.h) *
         static_cast<size_t>(image.w);
}

/*! Workspaces begin where transfers are best. */
size_t Rounded(size_t bytes) { return (bytes + 511) / 512 * 512; }

/*! The dimensions of an image in the order that a transpose gives them. */
std::vector<int> Dims(const Image& image, bool channels_last) {
  return channels_last ? std::vector<int>{image.n, image.h, image.w, image.c}
                       : std::vector<int>{image.n, image.c, image.h, image.w};
}

using Tensor = Owned<cnnlTensorDescriptor_t>;

void Describe(const Tensor& tensor, cnnlTensorLayout_t layout, cnnlDataType_t type, const std::vector<int>& dims) {
  CHECK(cnnlSetTensorDescriptor(tensor.get(), layout, type, static_cast<int>(dims.size()), dims.data()));
}

/*! A transpose of an image to NHWC, or from there. */
class Transpose {
 public:
  Transpose(cnnlHandle_t handle, cnnlDataType_t type, const Image& image, bool to_channels_last) : handle_(handle) {
    const std::vector<int> order = to_channels_last ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{0, 3, 1, 2};
    Describe(from_, CNNL_LAYOUT_ARRAY, type, Dims(image, !to_channels_last));
    Describe(to_, CNNL_LAYOUT_ARRAY, type, Dims(image, to_channels_last));
    CHECK(cnnlSetTransposeDescriptor(transpose_.get(), static_cast<int>(order.size()), order.data()));
    CHECK(cnnlGetTransposeWorkspaceSize(handle_, from_.get(), transpose_.get(), &bytes_));
  }

  size_t bytes() const { return bytes_; }

  void Queue(const void* from, void* to, void* workspace) const {
    CHECK(cnnlTranspose_v2(handle_, transpose_.get(), from_.get(), from, to_.get(), to, workspace, bytes_));
  }

 private:
  cnnlHandle_t handle_;
  Tensor from_{cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor};
  Tensor to_{cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor};
  Owned<cnnlTransposeDescriptor_t> transpose_{cnnlCreateTransposeDescriptor, cnnlDestroyTransposeDescriptor};
  size_t bytes_ = 0;
};

}  // namespace

View::View(void* data, cnnlDataType_t type, const std::vector<int>& shape, const std::vector<int>& strides,
           int64_t offset)
    : data_(static_cast<char*>(data) + offset * static_cast<int64_t>(Bytes(type))) {
  CHECK(cnnlCreateTensorDescriptor(&descriptor_));
  CHECK(cnnlSetTensorDescriptorEx(descriptor_, CNNL_LAYOUT_ARRAY, type, static_cast<int>(shape.size()), shape.data(),
                                  strides.data()));
}

View::~View() { RELEASE(cnnlDestroyTensorDescriptor(descriptor_)); }

Library::Library(cnrtQueue_t queue) : queue_(queue) {
  CHECK(cnnlCreate(&handle_));
  CHECK(cnnlSetQueue(handle_, queue));
}

Library::~Library() {
  if (workspace_ != nullptr) RELEASE(cnrtFree(workspace_));
  RELEASE(cnnlDestroy(handle_));
}

char* Library::Workspace(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > workspace_bytes_) {
    // Queued operators may still be using the old one.
    CHECK(cnrtQueueSync(queue_));
    if (workspace_ != nullptr) CHECK(cnrtFree(workspace_));
    workspace_ = nullptr;
    workspace_bytes_ = 0;
    CHECK(cnrtMalloc(&workspace_, bytes));
    workspace_bytes_ = bytes;
  }
  return static_cast<char*>(workspace_);
}

void Library::Product(float alpha, const View& a, const View& b, const View& out) {
  const Owned<cnnlMatMulDescriptor_t> product(cnnlMatMulDescCreate, cnnlMatMulDescDestroy);
  const Owned<cnnlMatMulAlgo_t> algorithm(cnnlMatMulAlgoCreate, cnnlMatMulAlgoDestroy);
  Owned<cnnlMatMulHeuristicResult_t> choice(cnnlCreateMatMulHeuristicResult, cnnlDestroyMatMulHeuristicResult);
  const int32_t yes = 1;
  const int32_t no = 0;
  CHECK(cnnlSetMatMulDescAttr(product.get(), CNNL_MATMUL_USE_STRIDE, &yes, sizeof(yes)));
  // float is not rounded to TF32
  CHECK(cnnlSetMatMulDescAttr(product.get(), CNNL_MATMUL_ALLOW_TF32, &no, sizeof(no)));
  int found = 0;
  CHECK(cnnlGetBatchMatMulAlgoHeuristic(handle_, product.get(), a.get(), b.get(), out.get(), nullptr, 1,
                                        choice.address(), &found));
  size_t bytes = 0;
  CHECK(cnnlGetBatchMatMulHeuristicResult(choice.get(), algorithm.get(), &bytes));
  const float beta = 0.0F;
  CHECK(cnnlBatchMatMulBCast_v2(handle_, product.get(), algorithm.get(), &alpha, a.get(), a.data(), b.get(), b.data(),
                                &beta, out.get(), out.data(), Workspace(bytes), bytes));
}

void Library::IntegerProduct(void* a, void* b, void* out, const Matrices& sizes) {
  const Tensor left(cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor);
  const Tensor right(cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor);
  const Tensor result(cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor);
  Describe(left, CNNL_LAYOUT_ARRAY, CNNL_DTYPE_INT8, {sizes.parts, sizes.m, sizes.k});
  Describe(right, CNNL_LAYOUT_ARRAY, CNNL_DTYPE_INT8, {sizes.parts, sizes.n, sizes.k});
  Describe(result, CNNL_LAYOUT_ARRAY, CNNL_DTYPE_FLOAT, {sizes.parts, sizes.m, sizes.n});
  // fixed-point numbers whose unit is 2^0
  CHECK(cnnlSetTensorDescriptorPosition(left.get(), 0));
  CHECK(cnnlSetTensorDescriptorPosition(right.get(), 0));
  size_t bytes = 0;
  CHECK(cnnlGetBatchMatMulBCastWorkspaceSize(handle_, left.get(), right.get(), result.get(), &bytes));
  CHECK(cnnlBatchMatMulBCast(handle_, false, true, left.get(), a, right.get(), b, Workspace(bytes), bytes, result.get(),
                             out));
}

void Library::Convolution(cnnlDataType_t type, const Image& x, const Image& weight, const Window& window,
                          const Image& out) {
  const Transpose from_x(handle_, type, x, true);
  const Transpose from_weight(handle_, type, weight, true);
  const Transpose to_out(handle_, type, out, false);
  Tensor tensors[3] = {{cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor},
                       {cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor},
                       {cnnlCreateTensorDescriptor, cnnlDestroyTensorDescriptor}};
  const Image* const images[3] = {&x, &weight, &out};
  for (int i = 0; i < 3; ++i) Describe(tensors[i], CNNL_LAYOUT_NHWC, type, Dims(*images[i], true));
  const Owned<cnnlConvolutionDescriptor_t> convolution(cnnlCreateConvolutionDescriptor,
                                                       cnnlDestroyConvolutionDescriptor);
  // above, below, left, right
  const int padding[4] = {window.padding[0], window.padding[0], window.padding[1], window.padding[1]};
  CHECK(cnnlSetConvolutionDescriptor(convolution.get(), 4, padding, window.stride, window.dilation, window.groups,
                                     CNNL_DTYPE_FLOAT));
  cnnlConvolutionForwardAlgo_t algorithm;
  CHECK(cnnlGetConvolutionForwardAlgorithm(handle_, convolution.get(), tensors[0].get(), tensors[1].get(),
                                           tensors[2].get(), CNNL_CONVOLUTION_FWD_FASTEST, &algorithm));
  size_t bytes = 0;
  CHECK(cnnlGetConvolutionForwardWorkspaceSize(handle_, tensors[0].get(), tensors[1].get(), tensors[2].get(), nullptr,
                                               convolution.get(), algorithm, &bytes));
  const size_t own = std::max({bytes, from_x.bytes(), from_weight.bytes(), to_out.bytes()});
  size_t places[3];
  size_t all = Rounded(own);
  for (int i = 0; i < 3; ++i) {
    places[i] = all;
    all += Rounded(Elements(*images[i]) * Bytes(type));
  }
  char* const workspace = Workspace(all);
  from_x.Queue(x.data, workspace + places[0], workspace);
  from_weight.Queue(weight.data, workspace + places[1], workspace);
  CHECK(cnnlConvolutionForward(handle_, convolution.get(), algorithm, nullptr, tensors[0].get(), workspace + places[0],
                               tensors[1].get(), workspace + places[1], nullptr, nullptr, workspace, bytes, nullptr,
                               tensors[2].get(), workspace + places[2]));
  to_out.Queue(workspace + places[2], out.data, workspace);
}

}  // namespace project
