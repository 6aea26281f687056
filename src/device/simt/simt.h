// SPDX-License-Identifier: Apache-2.0
// C interface of the host model of CUDA devices (libuir_device.so).
//
// The model runs kernels of a shared object that `uir_tvm.target.cuda.host_model` built from emitted CUDA text.
// Memory comes from the engine: it has red zones around every allocation and knows which bytes were written.
// All functions may be called from any thread; launches, of all models, run one at a time.
#pragma once

#include <stdint.h>

#include "device/engine/engine_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief One launch: a grid of `grid` blocks of `block` threads, both one-dimensional. */
typedef struct {
  /*! \brief Path of the shared object that holds the kernel. */
  const char* library;
  /*! \brief Name of the `extern "C" __global__` function. */
  const char* kernel;
  const UirSimtArg* args;
  int32_t num_args;
  int32_t grid;
  int32_t block;
  /*! \brief Bytes of the dynamic shared memory pool of each block. */
  int64_t shared_bytes;
  /*! \brief Not 0: all blocks are resident and may meet in `cooperative_groups::this_grid().sync()`. */
  int32_t cooperative;
  /*! \brief Most findings that are reported; the launch goes on to the end unless it cannot. 0 takes 16. */
  int32_t max_findings;
  /*! \brief Ends the launch with a finding when it has run so long, in seconds; 0: no limit. */
  double max_seconds;
} UirSimtLaunch;

//! \brief Run one launch.
//! \param result receives a JSON text to be freed with `uir_simt_free_text`:
//!   {"ok": bool, "error": str (the launch could not run: "" otherwise), "kernel": str, "seconds": float,
//!    "findings": [{"kind": str, "what": str, "kernel": str, "line": int, "block": int, "thread": int,
//!                  "space": str, "other_line": int, "other_block": int, "other_thread": int, "count": int}, ...],
//!    "counters": {name: int, ...}}
//!   `ok` is true where nothing was found. Numbers are -1 where they do not apply.
//! \return 0: ran without a finding; 1: ran, with findings; 2: could not run.
UIR_SIMT_API int uir_simt_launch(const UirSimtLaunch* launch, char** result);

#ifdef __cplusplus
}
#endif
