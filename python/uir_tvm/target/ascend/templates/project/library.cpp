// SPDX-License-Identifier: Apache-2.0
// Each operator has two phases: the first checks the operands and says how much workspace it needs, the second queues
// it. An executor is good for one call of the second phase, which also releases it.
#include "library.h"

#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_baddbmm.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_matmul.h"

namespace project {
namespace {

/*! cubeMathType KEEP_DTYPE: products of float are not rounded to HFLOAT32. */
constexpr int8_t kKeepDtype = 0;

}  // namespace

void Matmul(Device& device, const View& a, const View& b, const View& out) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnMatmulGetWorkspaceSize(a.get(), b.get(), out.get(), kKeepDtype, &bytes, &executor));
  CHECK_ACL(aclnnMatmul(device.Workspace(bytes), bytes, executor, device.stream()));
}

void Addmm(Device& device, const View& term, const View& a, const View& b, const View& out) {
  const Scalar one(1.0F);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnAddmmGetWorkspaceSize(term.get(), a.get(), b.get(), one.get(), one.get(), out.get(), kKeepDtype,
                                       &bytes, &executor));
  CHECK_ACL(aclnnAddmm(device.Workspace(bytes), bytes, executor, device.stream()));
}

void Baddbmm(Device& device, const View& term, const View& a, const View& b, const View& out) {
  const Scalar one(1.0F);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnBaddbmmGetWorkspaceSize(term.get(), a.get(), b.get(), one.get(), one.get(), out.get(), kKeepDtype,
                                         &bytes, &executor));
  CHECK_ACL(aclnnBaddbmm(device.Workspace(bytes), bytes, executor, device.stream()));
}

void Convolution(Device& device, const View& x, const View& weight, const View* bias, const Window& window,
                 const View& out) {
  const Numbers stride(window.stride);
  const Numbers padding(window.padding);
  const Numbers dilation(window.dilation);
  const Numbers output_padding({0, 0});
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnConvolutionGetWorkspaceSize(
      x.get(), weight.get(), bias != nullptr ? bias->get() : nullptr, stride.get(), padding.get(), dilation.get(),
      /*transposed=*/false, output_padding.get(), window.groups, out.get(), kKeepDtype, &bytes, &executor));
  CHECK_ACL(aclnnConvolution(device.Workspace(bytes), bytes, executor, device.stream()));
}

}  // namespace project
