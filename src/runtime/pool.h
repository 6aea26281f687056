// SPDX-License-Identifier: Apache-2.0
// Threads for kernels and the library. Whoever launches takes tasks himself until none is left, so that he waits for no
// thread that has not begun; threads that find nothing to do look for a moment, then sleep.
#pragma once

#include <tvm/runtime/c_backend_api.h>

namespace uir::runtime {

/*! \brief Within its life this thread's kernels, and the library, run on these threads instead of TVM's. */
class UsesPool {
 public:
  UsesPool();
  ~UsesPool();
  UsesPool(const UsesPool&) = delete;

 private:
  bool before_;
};

/*! \brief As TVMBackendParallelLaunch: `body(0) .. body(tasks - 1)`, for 0 as many as there are threads. Tasks may run
 * one after another, so that none may wait for another. Within a `UsesPool` on these threads, else on TVM's. */
int ParallelLaunch(FTVMParallelLambda body, void* data, int tasks);

}  // namespace uir::runtime
