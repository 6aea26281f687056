// SPDX-License-Identifier: Apache-2.0
// C interface of the host model of Cambricon MLU cores (libuir_device.so).
//
// The model runs kernels of a shared object that `uir_tvm.target.bang.host_model` built from BANG C text.
// Global memory is that of the engine, as on the model of CUDA devices (engine_api.h). Launches run
// one at a time; the function may be called from any thread.
#pragma once

#include "device/engine/engine_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief One launch. */
typedef struct {
  /*! \brief Path of the shared object that holds the kernel. */
  const char* library;
  /*! \brief Name of the `__mlu_entry__` function, or of a host launcher (units 0). */
  const char* kernel;
  /*! \brief Its parameters; integers are no more than 64 bits wide. */
  const UirSimtArg* args;
  int32_t num_args;
  /*! \brief Groups of the launch: tasks of a Block launch, clusters of a Union1 launch. */
  int32_t groups;
  //! \brief Cores of a group. 1: a Block launch of dim {groups, 1, 1}. 4: a Union1 launch of dim {4, groups, 1}.
  //! 0: `kernel` is a function of the host whose first parameter is the queue, others being those given here; the
  //! launches that it makes are run.
  int32_t units;
  //! \brief JSON of the device: {"name": str, "figures": {name: number}, "costs": {...}}, as
  //! `uir_tvm.target.bang.costs.as_data` describes costs; may be NULL, then sizes are those of the MLU370 and no time
  //! is counted.
  const char* device;
  /*! \brief Most findings that are reported; 0 takes 16. */
  int32_t max_findings;
  /*! \brief Ends the launch with a finding when it has run so long, in seconds; 0: no limit. */
  double max_seconds;
  /*! \brief Not 0: the result holds the timeline. */
  int32_t timeline;
  //! \brief Not 0: as of `UirAscendcLaunch`, instructions take their time alone. A kernel whose scalar code reads or
  //! writes memory runs whole all the same.
  int32_t times_only;
} UirBangLaunch;

//! \brief Run one launch.
//! \param result receives a JSON text to be freed with `uir_simt_free_text`, of the form that `uir_ascendc_launch`
//! answers. `block` of a finding is the task of a Block launch and the cluster of a Union launch; `core` is "ipu0" to
//! "ipu3" or "mpu".
//! \return 0: ran without a finding; 1: ran, with findings; 2: could not run.
UIR_SIMT_API int uir_bang_launch(const UirBangLaunch* launch, char** result);

#ifdef __cplusplus
}
#endif
