// SPDX-License-Identifier: Apache-2.0
// Stands for the vendor's header of this name: the functions that exported projects call, with its signatures.
#ifndef UIR_DEVICE_ASCENDC_ACL_ACL_H_
#define UIR_DEVICE_ASCENDC_ACL_ACL_H_

#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);
ACL_FUNC_VISIBILITY aclError aclFinalize();
ACL_FUNC_VISIBILITY const char* aclGetRecentErrMsg();

#ifdef __cplusplus
}
#endif

#endif  // UIR_DEVICE_ASCENDC_ACL_ACL_H_
