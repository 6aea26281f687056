// SPDX-License-Identifier: Apache-2.0
// What stands behind the launchers of a project's kernels: launches on the host model.
#pragma once

#include "cnrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief A kernel as the host model has it. */
typedef struct {
  /*! \brief The shared object that `uir_tvm.target.bang.host_model` built, and the launcher in it, a function
   *  of the text's own that says how many tasks there are. */
  const char* library;
  const char* kernel;
  /*! \brief The device as JSON (see device/bang/bang.h). */
  const char* device;
  int32_t num_args;
  const char* const* names;
  /*! \brief How many of them, the last ones, are sizes: numbers in place of addresses. */
  int32_t num_sizes;
} UirCnrtKernel;

/*! \brief Queues a launch; what is wrong with it is said when the queue is synchronized, as a launch returns nothing.
 */
UIR_CNRT_API void uir_cnrt_launch(const UirCnrtKernel* kernel, cnrtQueue_t queue, void* const* args);

#ifdef __cplusplus
}
#endif
