// SPDX-License-Identifier: Apache-2.0
/*!
 * \file simt.h
 * \brief C interface of the host model of CUDA devices (libuir_device.so).
 *
 * The model runs kernels of a shared object that `uir_tvm.device.simt.compile` built from emitted CUDA text.
 * Memory comes from the engine: it has red zones around every allocation and knows which bytes were written.
 * All functions may be called from any thread; launches, of all models, run one at a time.
 */
#ifndef UIR_DEVICE_SIMT_SIMT_H_
#define UIR_DEVICE_SIMT_SIMT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UIR_SIMT_API __attribute__((visibility("default")))

/*! \brief One kernel parameter: a pointer or an integer (kernels of the model take no others). */
typedef struct {
  /*! \brief The pointer, or the integer's value cast to a pointer. */
  void* value;
  /*!
   * \brief Bytes at the pointer, which bound all accesses. 0: memory of the engine, bounded by its allocation. Memory
   * that is not of the engine needs its size: it is copied into the engine for the launch, and back afterwards.
   * Less than 0: an integer.
   */
  int64_t bytes;
  /*! \brief Name of the parameter in findings; may be NULL. */
  const char* name;
} UirSimtArg;

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

/*!
 * \brief Run one launch.
 * \param result receives a JSON text to be freed with `uir_simt_free_text`:
 *   {"ok": bool, "error": str (the launch could not run: "" otherwise), "kernel": str, "seconds": float,
 *    "findings": [{"kind": str, "what": str, "kernel": str, "line": int, "block": int, "thread": int,
 *                  "space": str, "other_line": int, "other_block": int, "other_thread": int, "count": int}, ...],
 *    "counters": {name: int, ...}}
 *   `ok` is true where nothing was found. Numbers are -1 where they do not apply.
 * \return 0: ran without a finding; 1: ran, with findings; 2: could not run.
 */
UIR_SIMT_API int uir_simt_launch(const UirSimtLaunch* launch, char** result);

/*!
 * \brief Forget the kernels of a shared object, on whichever model they ran: before its file goes. What was never
 * launched is no error.
 */
UIR_SIMT_API void uir_simt_unload(const char* library);

/*! \brief Free a text that another function gave. */
UIR_SIMT_API void uir_simt_free_text(char* text);

/*!
 * \brief Allocate device memory of the engine. Nothing in it counts as written.
 * \param alignment a power of two, at most 65536; at least 256 is given.
 * \param label names the memory in findings; may be NULL.
 * \return The address (readable and writable by the host too), or NULL when memory is exhausted.
 */
UIR_SIMT_API void* uir_simt_alloc(size_t bytes, size_t alignment, const char* label);

/*! \brief Release memory of `uir_simt_alloc`. \return 0, or 1 when the address is no live allocation. */
UIR_SIMT_API int uir_simt_release(void* address);

/*!
 * \brief Copy between any two of host and engine memory; written bytes stay known.
 * Bytes copied from the host count as written, bytes copied within the engine keep their state.
 * \return 0, or 1 when a range leaves an allocation of the engine.
 */
UIR_SIMT_API int uir_simt_copy(void* to, const void* from, size_t bytes);

/*! \brief Say that the host wrote the bytes. \return 0, or 1 when the range leaves its allocation. */
UIR_SIMT_API int uir_simt_mark_written(void* address, size_t bytes);

/*! \brief Offset of the first byte of the range that nothing wrote, or -1 when all are written (or not of the engine).
 */
UIR_SIMT_API int64_t uir_simt_first_unwritten(const void* address, size_t bytes);

/*! \brief 1 when the range lies in one live allocation of the engine, else 0. */
UIR_SIMT_API int uir_simt_contains(const void* address, size_t bytes);

/*! \brief Version of this interface; changes when a struct or a meaning does. */
UIR_SIMT_API int uir_simt_version(void);

#ifdef __cplusplus
}
#endif

#endif  // UIR_DEVICE_SIMT_SIMT_H_
