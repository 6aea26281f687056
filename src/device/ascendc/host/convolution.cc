// SPDX-License-Identifier: Apache-2.0
// aclnnConvolution of two dimensions: sums in float, one rounding to the result's type.
#include "aclnnop/aclnn_convolution.h"
#include "device/ascendc/host/executor.h"

using namespace uir_acl;

namespace {

constexpr const char* kCall = "aclnnConvolutionGetWorkspaceSize";

struct Window {
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
};

int64_t Extent(int64_t size, int64_t kernel, const Window& window, int d) {
  return (size + 2 * window.padding[d] - window.dilation[d] * (kernel - 1) - 1) / window.stride[d] + 1;
}

aclnnStatus Check(const aclTensor& x, const aclTensor& weight, const aclTensor* bias, const aclTensor& out,
                  const Window& window) {
  if (x.shape.size() != 4 || weight.shape.size() != 4 || out.shape.size() != 4) {
    return Invalid(kCall, "exported projects have convolutions of 2 dimensions only");
  }
  if (x.format != ACL_FORMAT_NCHW || weight.format != ACL_FORMAT_NCHW || out.format != ACL_FORMAT_NCHW) {
    return Invalid(kCall, "input, weight and output are in ACL_FORMAT_NCHW");
  }
  if (window.stride.size() != 2 || window.padding.size() != 2 || window.dilation.size() != 2) {
    return Invalid(kCall, "stride, padding and dilation are two numbers each");
  }
  for (int d = 0; d < 2; ++d) {
    if (window.stride[d] < 1 || window.dilation[d] < 1 || window.padding[d] < 0) {
      return Invalid(kCall, "a stride, padding or dilation out of range");
    }
  }
  if (window.groups < 1 || window.groups > 65535 || weight.shape[1] * window.groups != x.shape[1] ||
      weight.shape[0] % window.groups != 0) {
    return Invalid(kCall, "groups do not fit the channels");
  }
  const std::vector<int64_t> want{x.shape[0], weight.shape[0], Extent(x.shape[2], weight.shape[2], window, 0),
                                  Extent(x.shape[3], weight.shape[3], window, 1)};
  if (out.shape != want) return Invalid(kCall, "the result has another shape");
  if (!SameFloats({&x, &weight, &out}) || (bias != nullptr && bias->type != out.type)) {
    return Invalid(kCall, "operands are float, half or bfloat16, all of one type");
  }
  if (bias != nullptr && (bias->shape != std::vector<int64_t>{weight.shape[0]} || bias->format != ACL_FORMAT_ND)) {
    return Invalid(kCall, "the bias is a vector of the output's channels in ACL_FORMAT_ND");
  }
  return 0;
}

std::string Compute(const aclTensor& x, const aclTensor& weight, const aclTensor& bias, bool has_bias,
                    const aclTensor& out, const Window& window) {
  std::vector<float> input, factors, added;
  std::string message;
  if (!Read(x, &input, &message) || !Read(weight, &factors, &message)) return message;
  if (has_bias && !Read(bias, &added, &message)) return message;
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t inner = weight.shape[1], kh = weight.shape[2], kw = weight.shape[3];
  const int64_t outer = out.shape[1], oh = out.shape[2], ow = out.shape[3], each = outer / window.groups;
  std::vector<float> sums(Count(out.shape));
  for (int64_t image = 0; image < out.shape[0]; ++image) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t row = 0; row < oh; ++row) {
        for (int64_t column = 0; column < ow; ++column) {
          float sum = has_bias ? added[o] : 0.0F;
          for (int64_t i = 0; i < inner; ++i) {
            const float* plane = &input[(image * channels + o / each * inner + i) * height * width];
            for (int64_t r = 0; r < kh; ++r) {
              const int64_t y = row * window.stride[0] - window.padding[0] + r * window.dilation[0];
              if (y < 0 || y >= height) continue;
              for (int64_t c = 0; c < kw; ++c) {
                const int64_t z = column * window.stride[1] - window.padding[1] + c * window.dilation[1];
                if (z >= 0 && z < width) sum += plane[y * width + z] * factors[((o * inner + i) * kh + r) * kw + c];
              }
            }
          }
          sums[((image * outer + o) * oh + row) * ow + column] = sum;
        }
      }
    }
  }
  Write(out, sums);
  return "";
}

}  // namespace

aclnnStatus aclnnConvolutionGetWorkspaceSize(const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
                                             const aclIntArray* stride, const aclIntArray* padding,
                                             const aclIntArray* dilation, bool transposed,
                                             const aclIntArray* outputPadding, const int64_t groups, aclTensor* output,
                                             int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor) {
  if (const aclnnStatus status =
          NotNull(kCall, {input, weight, stride, padding, dilation, outputPadding, output, workspaceSize, executor})) {
    return status;
  }
  if (transposed) return Invalid(kCall, "exported projects have no transposed convolutions");
  if (cubeMathType < 0 || cubeMathType > 3) return Invalid(kCall, "cubeMathType is 0 to 3");
  const Window window{stride->values, padding->values, dilation->values, groups};
  if (const aclnnStatus status = Check(*input, *weight, bias, *output, window)) return status;
  const bool has_bias = bias != nullptr;
  auto work = [x = *input, w = *weight, b = has_bias ? *bias : *output, has_bias, out = *output, window] {
    return Compute(x, w, b, has_bias, out, window);
  };
  return Prepare(work, Copies({input, weight, bias, output}), workspaceSize, executor);
}

aclnnStatus aclnnConvolution(void* workspace, const uint64_t workspaceSize, aclOpExecutor* executor,
                             aclrtStream stream) {
  return Execute("aclnnConvolution", workspace, workspaceSize, executor, stream);
}
