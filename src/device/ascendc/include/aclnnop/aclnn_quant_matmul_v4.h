// SPDX-License-Identifier: Apache-2.0
// Stands for the vendor's header of this name: the functions that exported projects call, with its signatures.
#pragma once

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclnnStatus aclnnQuantMatmulV4GetWorkspaceSize(const aclTensor* x1, const aclTensor* x2,
                                                                   const aclTensor* scale, const aclTensor* offset,
                                                                   const aclTensor* pertokenScaleOptional,
                                                                   const aclTensor* bias, bool transposeX1,
                                                                   bool transposeX2, const aclTensor* out,
                                                                   uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnQuantMatmulV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif
