// SPDX-License-Identifier: Apache-2.0
// C interface of the host model of Ascend 910B cores (libuir_device.so).
//
// The model runs kernels of a shared object that `uir_tvm.target.ascend.host_model` built from Ascend C text.
// Global memory is that of the engine, as on the model of CUDA devices (engine_api.h). Launches run
// one at a time; the function may be called from any thread.
#pragma once

#include "device/engine/engine_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief One launch of `blocks` blocks. */
typedef struct {
  /*! \brief Path of the shared object that holds the kernel. */
  const char* library;
  /*! \brief Name of the `extern "C" __global__ __aicore__` function. */
  const char* kernel;
  /*! \brief Its parameters; integers are no more than 64 bits wide. */
  const UirSimtArg* args;
  int32_t num_args;
  int32_t blocks;
  //! \brief "aiv": a block is a vector core; "aic": a cube core; "mix_1_1" and "mix_1_2" (or "mix"): a cube core with
  //! one or two vector cores.
  const char* core;
  //! \brief JSON of the device: {"name": str, "figures": {name: number}, "costs": {...}}, as
  //! `uir_tvm.target.ascend.costs.as_data` describes costs; may be NULL, then sizes are those of the 910B2 and no
  //! time is counted.
  const char* device;
  /*! \brief Most findings that are reported; 0 takes 16. */
  int32_t max_findings;
  /*! \brief Ends the launch with a finding when it has run so long, in seconds; 0: no limit. */
  double max_seconds;
  /*! \brief Not 0: the result holds the timeline. */
  int32_t timeline;
  //! \brief Not 0: instructions take their time and no effect, and the memory stays as it is. A kernel whose scalar
  //! code reads memory runs whole all the same: its time may depend on what it reads. Neither races nor bytes that
  //! nobody wrote are found without effects; all other checks hold.
  int32_t times_only;
} UirAscendcLaunch;

//! \brief Run one launch.
//! \param result receives a JSON text to be freed with `uir_simt_free_text`:
//!   {"ok": bool, "error": str (the launch could not run: "" otherwise), "kernel": str, "seconds": float,
//!    "computed": bool (instructions took effect), "looked": bool (scalar code read memory),
//!    "findings": [{"kind": str, "what": str, "kernel": str, "line": int, "space": str, "block": int, "core": str,
//!                  "pipe": str, "other_line": int, "other_block": int, "other_core": str, "other_pipe": str,
//!                  "count": int}, ...],
//!    "counters": {name: int},
//!    "modelled": {"seconds": float, "bound": str, "pipes": {name: {"busy_seconds": float, "instructions": int,
//!                 "bytes": int}}, "timeline": [{"core": int, "pipe": str, "name": str, "line": int,
//!                                             "start": float, "end": float}]}}
//!   `ok` is true where nothing was found. Numbers are -1 and texts empty where they do not apply. Modelled times are
//!   of the device, in seconds; "seconds" is what the model took on this machine.
//! \return 0: ran without a finding; 1: ran, with findings; 2: could not run.
UIR_SIMT_API int uir_ascendc_launch(const UirAscendcLaunch* launch, char** result);

#ifdef __cplusplus
}
#endif
