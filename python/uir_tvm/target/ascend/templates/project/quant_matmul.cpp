// SPDX-License-Identifier: Apache-2.0
// The product of bytes of library.h, which needs CANN 8.0 or later.
#include "aclnnop/aclnn_quant_matmul_v4.h"
#include "library.h"

namespace project {

void QuantMatmul(Device& device, const View& a, const View& b, const View& scale, const View& out) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnQuantMatmulV4GetWorkspaceSize(a.get(), b.get(), scale.get(), /*offset=*/nullptr,
                                               /*pertokenScaleOptional=*/nullptr, /*bias=*/nullptr,
                                               /*transposeX1=*/false, /*transposeX2=*/true, out.get(), &bytes,
                                               &executor));
  CHECK_ACL(aclnnQuantMatmulV4(device.Workspace(bytes), bytes, executor, device.stream()));
}

}  // namespace project
