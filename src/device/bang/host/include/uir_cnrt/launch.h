// SPDX-License-Identifier: Apache-2.0
// What stands behind the launchers of a project's kernels: launches on the host model.
#pragma once

#include "cnrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief A kernel as the host model has it. */
typedef struct {
  /*! \brief The shared object that `uir_tvm.target.bang.host_model` built, and the function in it. */
  const char* library;
  const char* kernel;
  /*! \brief Groups of a launch, and cores of a group: 1 (Block) or 4 (Union1). */
  int32_t groups;
  int32_t units;
  /*! \brief The device as JSON (see device/bang/bang.h). */
  const char* device;
  int32_t num_args;
  const char* const* names;
} UirCnrtKernel;

/*! \brief Queues a launch; what is wrong with it is said when the queue is synchronized, as a launch returns nothing.
 */
UIR_CNRT_API void uir_cnrt_launch(const UirCnrtKernel* kernel, cnrtQueue_t queue, void* const* args);

#ifdef __cplusplus
}
#endif
