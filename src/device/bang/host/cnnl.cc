// SPDX-License-Identifier: Apache-2.0
// The operator library: products, transposes and convolutions in float, one rounding to the result's type.
#include "cnnl.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/bang/host/state.h"
#include "device/engine/engine_api.h"
#include "device/host/strided.h"

using namespace uir_cnrt;
using uir_host::Count;
using uir_host::Strided;

struct cnnlContext {
  cnrtQueue_t queue = nullptr;
};
struct cnnlTensorStruct {
  cnnlTensorLayout_t layout{};
  cnnlDataType_t type{};
  std::vector<int64_t> shape, strides;
  int position = 0;  // of fixed-point numbers, whose unit is two to this power
};
struct cnnlMatMulStruct {
  std::map<int, int32_t> attributes;
};
struct cnnlMatMulAlgoStruct {
  const cnnlMatMulStruct* chosen = nullptr;
};
struct cnnlMatMulHeuristicResult {
  const cnnlMatMulStruct* chosen = nullptr;
};
struct cnnlTransposeStruct {
  std::vector<int> order;
};
struct cnnlConvolutionStruct {
  int pad[4], stride[2], dilation[2], groups;
};

namespace {

cnnlStatus_t Bad(const std::string& message) {
  Fail(cnrtErrorArgsInvalid, message);
  return CNNL_STATUS_BAD_PARAM;
}

template <typename Handle>
cnnlStatus_t Make(const char* kind, Handle** handle) {
  *handle = new Handle();
  Runtime().handles[kind].insert(*handle);
  return CNNL_STATUS_SUCCESS;
}

template <typename Handle>
cnnlStatus_t Drop(const char* kind, Handle* handle) {
  if (Runtime().handles[kind].erase(handle) == 0) return Bad(std::string("no living handle of ") + kind + ".");
  delete handle;
  return CNNL_STATUS_SUCCESS;
}

Strided At(const cnnlTensorStruct& tensor, const void* data) {
  const auto type = [&] {
    if (tensor.type == CNNL_DTYPE_INT8) return uir_host::Element::kInt8;
    return tensor.type == CNNL_DTYPE_FLOAT ? uir_host::Element::kFloat : uir_host::Element::kHalf;
  }();
  return {tensor.shape, tensor.strides, 0, type, static_cast<char*>(const_cast<void*>(data))};
}

bool OnDevice(const Strided& view) {
  int64_t last = 0;
  for (size_t d = 0; d < view.shape.size(); ++d) last += (view.shape[d] - 1) * view.strides[d];
  return Runtime().OnDevice(view.data, static_cast<size_t>((last + 1) * uir_host::SizeOf(view.type)));
}

/*! Queues work, which says what is wrong, and spoils the workspace before: what it leaves there is of no use. */
template <typename Work>
cnnlStatus_t Queue(cnnlHandle_t handle, const char* call, void* workspace, size_t bytes, Work work) {
  Stream* queue = QueueOf(handle->queue, call);
  if (queue == nullptr) return CNNL_STATUS_BAD_PARAM;
  if (bytes != 0 && !Runtime().OnDevice(workspace, bytes)) {
    return Bad(std::string(call) + ": the workspace is no device memory of that size.");
  }
  queue->tasks.push_back([=](double*) -> int {
    const std::vector<char> rubbish(bytes, static_cast<char>(0xa5));
    if (bytes != 0) uir_simt_copy(workspace, rubbish.data(), bytes);
    const std::string message = work();
    return message.empty() ? 0 : Fail(cnrtErrorUnknown, std::string(call) + ": " + message + ".");
  });
  return CNNL_STATUS_SUCCESS;
}

constexpr size_t kWorkspace = 1024;

bool UnitStride(const cnnlTensorStruct& tensor) {
  const size_t rank = tensor.shape.size();
  return tensor.strides[rank - 1] == 1 || tensor.strides[rank - 2] == 1 || tensor.shape[rank - 1] == 1 ||
         tensor.shape[rank - 2] == 1;
}

/*! Whether elements lie by rows, without gaps. */
bool Plain(const cnnlTensorStruct& tensor) {
  int64_t step = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.shape[d];
  }
  return true;
}

/*! A batch of matrices, each turned where it is asked for. */
Strided Turned(Strided view, bool turned) {
  const size_t last = view.shape.size() - 1;
  if (turned) {
    std::swap(view.shape[last - 1], view.shape[last]);
    std::swap(view.strides[last - 1], view.strides[last]);
  }
  return view;
}

/*! What is wrong with the operands of products of matrices; empty where nothing is. */
std::string Misfit(const Strided& left, const Strided& right, const Strided& out) {
  const auto batch = [](const std::vector<int64_t>& shape) {
    return std::vector<int64_t>(shape.begin(), shape.end() - 2);
  };
  std::vector<int64_t> want;
  if (!uir_host::Joined(batch(left.shape), batch(right.shape), &want)) return "the batches do not broadcast";
  want.insert(want.end(), {left.shape[left.shape.size() - 2], right.shape.back()});
  if (want != out.shape || left.shape.back() != right.shape[right.shape.size() - 2]) return "the shapes do not fit";
  for (const Strided& view : {left, right, out}) {
    if (!OnDevice(view)) return "an operand leaves the device's memory";
  }
  return "";
}

}  // namespace

const char* cnnlGetErrorString(cnnlStatus_t status) {
  return status == CNNL_STATUS_SUCCESS ? "" : Runtime().message.c_str();
}

cnnlStatus_t cnnlCreate(cnnlHandle_t* handle) { return Make("handles", handle); }
cnnlStatus_t cnnlDestroy(cnnlHandle_t handle) { return Drop("handles", handle); }

cnnlStatus_t cnnlSetQueue(cnnlHandle_t handle, cnrtQueue_t queue) {
  if (QueueOf(queue, "cnnlSetQueue") == nullptr) return CNNL_STATUS_BAD_PARAM;
  handle->queue = queue;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlCreateTensorDescriptor(cnnlTensorDescriptor_t* desc) { return Make("tensor descriptors", desc); }
cnnlStatus_t cnnlDestroyTensorDescriptor(cnnlTensorDescriptor_t desc) { return Drop("tensor descriptors", desc); }

cnnlStatus_t cnnlSetTensorDescriptor(cnnlTensorDescriptor_t desc, cnnlTensorLayout_t layout, cnnlDataType_t dtype,
                                     int dimNb, const int dimSize[]) {
  std::vector<int> strides(dimNb, 1);
  for (int d = dimNb - 2; d >= 0; --d) strides[d] = strides[d + 1] * dimSize[d + 1];
  return cnnlSetTensorDescriptorEx(desc, layout, dtype, dimNb, dimSize, strides.data());
}

cnnlStatus_t cnnlSetTensorDescriptorEx(cnnlTensorDescriptor_t desc, cnnlTensorLayout_t layout, cnnlDataType_t dtype,
                                       int dimNb, const int dimSize[], const int dimStride[]) {
  if (dimNb < 1 || dimNb > 8) return Bad("cnnlSetTensorDescriptorEx: 1 to 8 dimensions.");
  desc->layout = layout;
  desc->type = dtype;
  desc->shape.assign(dimSize, dimSize + dimNb);
  desc->strides.assign(dimStride, dimStride + dimNb);
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlSetTensorDescriptorPosition(cnnlTensorDescriptor_t desc, int position) {
  if (desc->type != CNNL_DTYPE_INT8) return Bad("cnnlSetTensorDescriptorPosition: the tensor is none of fixed point.");
  if (position < -128 || position > 127) return Bad("cnnlSetTensorDescriptorPosition: positions are -128 to 127.");
  desc->position = position;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlMatMulDescCreate(cnnlMatMulDescriptor_t* desc) { return Make("product descriptors", desc); }
cnnlStatus_t cnnlMatMulDescDestroy(cnnlMatMulDescriptor_t desc) { return Drop("product descriptors", desc); }
cnnlStatus_t cnnlMatMulAlgoCreate(cnnlMatMulAlgo_t* algo) { return Make("algorithms", algo); }
cnnlStatus_t cnnlMatMulAlgoDestroy(cnnlMatMulAlgo_t algo) { return Drop("algorithms", algo); }
cnnlStatus_t cnnlCreateMatMulHeuristicResult(cnnlMatMulHeuristicResult_t* result) { return Make("choices", result); }
cnnlStatus_t cnnlDestroyMatMulHeuristicResult(cnnlMatMulHeuristicResult_t result) { return Drop("choices", result); }

cnnlStatus_t cnnlSetMatMulDescAttr(cnnlMatMulDescriptor_t desc, cnnlMatMulDescAttribute_t attr, const void* buf,
                                   size_t size) {
  if (size != sizeof(int32_t)) return Bad("cnnlSetMatMulDescAttr: attributes are of int32_t.");
  desc->attributes[attr] = *static_cast<const int32_t*>(buf);
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlGetBatchMatMulAlgoHeuristic(cnnlHandle_t, cnnlMatMulDescriptor_t desc, cnnlTensorDescriptor_t a,
                                             cnnlTensorDescriptor_t b, cnnlTensorDescriptor_t c,
                                             cnnlMatMulPrefer_t preference, int requested,
                                             cnnlMatMulHeuristicResult_t results[], int* count) {
  if (preference != nullptr || requested < 1)
    return Bad("cnnlGetBatchMatMulAlgoHeuristic: no preference is supported.");
  for (const cnnlTensorStruct* tensor : {a, b, c}) {
    if (tensor->shape.size() < 2) return Bad("cnnlGetBatchMatMulAlgoHeuristic: operands need 2 dimensions or more.");
  }
  results[0]->chosen = desc;
  *count = 1;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlGetBatchMatMulHeuristicResult(cnnlMatMulHeuristicResult_t result, cnnlMatMulAlgo_t algo,
                                               size_t* workspaceSize) {
  if (result->chosen == nullptr) return Bad("cnnlGetBatchMatMulHeuristicResult: nothing was chosen.");
  algo->chosen = result->chosen;
  *workspaceSize = kWorkspace;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlBatchMatMulBCast_v2(cnnlHandle_t handle, cnnlMatMulDescriptor_t desc, cnnlMatMulAlgo_t algo,
                                     const void* alpha, const cnnlTensorDescriptor_t aDesc, const void* a,
                                     const cnnlTensorDescriptor_t bDesc, const void* b, const void* beta,
                                     const cnnlTensorDescriptor_t cDesc, void* c, void* workspace,
                                     size_t workspaceSize) {
  constexpr const char* kCall = "cnnlBatchMatMulBCast_v2";
  if (algo->chosen != desc || workspaceSize != kWorkspace) {
    return Bad("cnnlBatchMatMulBCast_v2: an algorithm that was chosen for another product, or its workspace.");
  }
  if (*static_cast<const float*>(beta) != 0.0F) return Bad("cnnlBatchMatMulBCast_v2: projects add no term.");
  const Strided left = At(*aDesc, a), right = At(*bDesc, b), out = At(*cDesc, c);
  for (const cnnlTensorStruct* tensor : {aDesc, bDesc, cDesc}) {
    if (tensor->type != aDesc->type || tensor->layout != CNNL_LAYOUT_ARRAY) return Bad("operands of several types.");
    if (!Plain(*tensor) && (desc->attributes[CNNL_MATMUL_USE_STRIDE] == 0 || !UnitStride(*tensor))) {
      return Bad("cnnlBatchMatMulBCast_v2: strides are not used, or none of a matrix is 1.");
    }
  }
  const std::string wrong = Misfit(left, right, out);
  if (!wrong.empty()) return Bad("cnnlBatchMatMulBCast_v2: " + wrong + ".");
  const float factor = *static_cast<const float*>(alpha);
  return Queue(handle, kCall, workspace, workspaceSize, [=]() -> std::string {
    std::vector<float> x, y;
    std::string message;
    if (!uir_host::Read(left, &x, &message) || !uir_host::Read(right, &y, &message)) return message;
    std::vector<float> sums = uir_host::Products(x, left.shape, y, right.shape, out.shape);
    for (float& sum : sums) sum *= factor;
    uir_host::Write(out, sums);
    return "";
  });
}

cnnlStatus_t cnnlGetBatchMatMulBCastWorkspaceSize(cnnlHandle_t, const cnnlTensorDescriptor_t,
                                                  const cnnlTensorDescriptor_t, const cnnlTensorDescriptor_t,
                                                  size_t* size) {
  *size = kWorkspace;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlBatchMatMulBCast(cnnlHandle_t handle, bool isTransA, bool isTransB, const cnnlTensorDescriptor_t aDesc,
                                  const void* a, const cnnlTensorDescriptor_t bDesc, const void* b, void* workspace,
                                  size_t workspaceSize, const cnnlTensorDescriptor_t cDesc, void* c) {
  if (workspaceSize != kWorkspace) return Bad("cnnlBatchMatMulBCast: not the workspace that was asked for.");
  if (aDesc->type != CNNL_DTYPE_INT8 || bDesc->type != aDesc->type || cDesc->type != CNNL_DTYPE_FLOAT) {
    return Bad("cnnlBatchMatMulBCast: projects multiply int8 into float.");
  }
  for (const cnnlTensorStruct* tensor : {aDesc, bDesc, cDesc}) {
    if (tensor->layout != CNNL_LAYOUT_ARRAY || tensor->shape.size() < 2 || !Plain(*tensor)) {
      return Bad("cnnlBatchMatMulBCast: operands are contiguous, of 2 dimensions or more.");
    }
  }
  const Strided left = Turned(At(*aDesc, a), isTransA), right = Turned(At(*bDesc, b), isTransB), out = At(*cDesc, c);
  const std::string wrong = Misfit(left, right, out);
  if (!wrong.empty()) return Bad("cnnlBatchMatMulBCast: " + wrong + ".");
  const float unit = std::ldexp(1.0F, aDesc->position + bDesc->position);
  return Queue(handle, "cnnlBatchMatMulBCast", workspace, workspaceSize, [=]() -> std::string {
    std::vector<float> x, y;
    std::string message;
    if (!uir_host::Read(left, &x, &message) || !uir_host::Read(right, &y, &message)) return message;
    std::vector<float> sums = uir_host::Products(x, left.shape, y, right.shape, out.shape);
    for (float& sum : sums) sum *= unit;
    uir_host::Write(out, sums);
    return "";
  });
}

cnnlStatus_t cnnlCreateTransposeDescriptor(cnnlTransposeDescriptor_t* desc) { return Make("transposes", desc); }
cnnlStatus_t cnnlDestroyTransposeDescriptor(cnnlTransposeDescriptor_t desc) { return Drop("transposes", desc); }

cnnlStatus_t cnnlSetTransposeDescriptor(cnnlTransposeDescriptor_t desc, const int dims, const int permute[]) {
  desc->order.assign(permute, permute + dims);
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlGetTransposeWorkspaceSize(cnnlHandle_t, const cnnlTensorDescriptor_t, const cnnlTransposeDescriptor_t,
                                           size_t* size) {
  *size = kWorkspace;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlTranspose_v2(cnnlHandle_t handle, const cnnlTransposeDescriptor_t desc,
                              const cnnlTensorDescriptor_t xDesc, const void* x, const cnnlTensorDescriptor_t yDesc,
                              void* y, void* workspace, size_t workspaceSize) {
  Strided from = At(*xDesc, x);
  const Strided to = At(*yDesc, y);
  if (desc->order.size() != from.shape.size()) return Bad("cnnlTranspose_v2: an order of another rank.");
  Strided turned = from;
  for (size_t d = 0; d < desc->order.size(); ++d) {
    turned.shape[d] = from.shape[desc->order[d]];
    turned.strides[d] = from.strides[desc->order[d]];
  }
  if (turned.shape != to.shape) return Bad("cnnlTranspose_v2: the result has another shape.");
  if (!OnDevice(from) || !OnDevice(to)) return Bad("cnnlTranspose_v2: an operand leaves the device's memory.");
  return Queue(handle, "cnnlTranspose_v2", workspace, workspaceSize, [=]() -> std::string {
    std::vector<float> values;
    std::string message;
    if (!uir_host::Read(turned, &values, &message)) return message;
    uir_host::Write(to, values);
    return "";
  });
}

cnnlStatus_t cnnlCreateConvolutionDescriptor(cnnlConvolutionDescriptor_t* desc) { return Make("convolutions", desc); }
cnnlStatus_t cnnlDestroyConvolutionDescriptor(cnnlConvolutionDescriptor_t desc) { return Drop("convolutions", desc); }

cnnlStatus_t cnnlSetConvolutionDescriptor(cnnlConvolutionDescriptor_t desc, const int dimNb, const int pad[],
                                          const int stride[], const int dilation[], const int groups,
                                          cnnlDataType_t computeType) {
  if (dimNb != 4 || computeType != CNNL_DTYPE_FLOAT)
    return Bad("cnnlSetConvolutionDescriptor: 4 dimensions, in float.");
  for (int i = 0; i < 4; ++i) desc->pad[i] = pad[i];
  for (int i = 0; i < 2; ++i) {
    desc->stride[i] = stride[i];
    desc->dilation[i] = dilation[i];
  }
  desc->groups = groups;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlGetConvolutionForwardAlgorithm(cnnlHandle_t, const cnnlConvolutionDescriptor_t,
                                                const cnnlTensorDescriptor_t, const cnnlTensorDescriptor_t,
                                                const cnnlTensorDescriptor_t, cnnlConvolutionFwdPreference_t,
                                                cnnlConvolutionForwardAlgo_t* algo) {
  *algo = CNNL_CONVOLUTION_FWD_ALGO_DIRECT;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlGetConvolutionForwardWorkspaceSize(cnnlHandle_t, const cnnlTensorDescriptor_t,
                                                    const cnnlTensorDescriptor_t, const cnnlTensorDescriptor_t,
                                                    const cnnlTensorDescriptor_t, const cnnlConvolutionDescriptor_t,
                                                    cnnlConvolutionForwardAlgo_t, size_t* size) {
  *size = 2 * kWorkspace;
  return CNNL_STATUS_SUCCESS;
}

cnnlStatus_t cnnlConvolutionForward(cnnlHandle_t handle, const cnnlConvolutionDescriptor_t desc,
                                    cnnlConvolutionForwardAlgo_t, const void*, const cnnlTensorDescriptor_t xDesc,
                                    const void* x, const cnnlTensorDescriptor_t wDesc, const void* w,
                                    const cnnlTensorDescriptor_t biasDesc, const void*, void* workspace,
                                    size_t workspaceSize, const void*, const cnnlTensorDescriptor_t yDesc, void* y) {
  constexpr const char* kCall = "cnnlConvolutionForward";
  const Strided in = At(*xDesc, x), weight = At(*wDesc, w), out = At(*yDesc, y);
  const cnnlConvolutionStruct of = *desc;
  for (const cnnlTensorStruct* tensor : {xDesc, wDesc, yDesc}) {
    if (tensor->layout != CNNL_LAYOUT_NHWC || tensor->shape.size() != 4) {
      return Bad("cnnlConvolutionForward: operands are in CNNL_LAYOUT_NHWC.");
    }
  }
  if (biasDesc != nullptr || workspaceSize != 2 * kWorkspace || of.groups < 1) {
    return Bad("cnnlConvolutionForward: a bias, or not the workspace that was asked for.");
  }
  const auto extent = [&](int64_t size, int64_t kernel, int d) {
    return (size + of.pad[2 * d] + of.pad[2 * d + 1] - of.dilation[d] * (kernel - 1) - 1) / of.stride[d] + 1;
  };
  const std::vector<int64_t> want{in.shape[0], extent(in.shape[1], weight.shape[1], 0),
                                  extent(in.shape[2], weight.shape[2], 1), weight.shape[0]};
  if (out.shape != want || weight.shape[3] * of.groups != in.shape[3] || weight.shape[0] % of.groups != 0) {
    return Bad("cnnlConvolutionForward: the shapes do not fit.");
  }
  return Queue(handle, kCall, workspace, workspaceSize, [=]() -> std::string {
    std::vector<float> pixels, factors;
    std::string message;
    if (!uir_host::Read(in, &pixels, &message) || !uir_host::Read(weight, &factors, &message)) return message;
    const int64_t height = in.shape[1], width = in.shape[2], channels = in.shape[3];
    const int64_t kh = weight.shape[1], kw = weight.shape[2], inner = weight.shape[3];
    const int64_t outer = weight.shape[0], each = outer / of.groups;
    std::vector<float> sums(Count(out.shape), 0.0F);
    size_t at = 0;
    for (int64_t n = 0; n < out.shape[0]; ++n) {
      for (int64_t row = 0; row < out.shape[1]; ++row) {
        for (int64_t column = 0; column < out.shape[2]; ++column) {
          for (int64_t o = 0; o < outer; ++o, ++at) {
            for (int64_t r = 0; r < kh; ++r) {
              const int64_t v = row * of.stride[0] - of.pad[0] + r * of.dilation[0];
              if (v < 0 || v >= height) continue;
              for (int64_t c = 0; c < kw; ++c) {
                const int64_t u = column * of.stride[1] - of.pad[2] + c * of.dilation[1];
                if (u < 0 || u >= width) continue;
                const float* pixel = &pixels[((n * height + v) * width + u) * channels + o / each * inner];
                const float* factor = &factors[((o * kh + r) * kw + c) * inner];
                for (int64_t i = 0; i < inner; ++i) sums[at] += pixel[i] * factor[i];
              }
            }
          }
        }
      }
    }
    uir_host::Write(out, sums);
    return "";
  });
}
