// SPDX-License-Identifier: Apache-2.0
// What stands behind the generated `aclrtlaunch_NAME.h`: a launch of a kernel on the host model.
#pragma once

#include <stdint.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief A kernel as the host model has it. */
typedef struct {
  /*! \brief The shared object that `uir_tvm.target.ascend.host_model` built, and the function in it. */
  const char* library;
  const char* kernel;
  /*! \brief "aiv", "aic" or "mix". */
  const char* core;
  /*! \brief The device as JSON (see device/ascendc/ascendc.h). */
  const char* device;
  int32_t num_args;
  const char* const* names;
  /*! \brief How many of them, the last ones, are sizes: numbers in place of addresses. */
  int32_t num_sizes;
} UirAclKernel;

/*! \brief Queues a launch; returns 0, or a code of the runtime. */
ACL_FUNC_VISIBILITY uint32_t uir_acl_launch(const UirAclKernel* kernel, uint32_t blocks, aclrtStream stream,
                                            void* const* args);

#ifdef __cplusplus
}
#endif
