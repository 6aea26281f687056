// SPDX-License-Identifier: Apache-2.0
// C interface of what the host models of all devices share (libuir_device.so): memory, arguments, answers.
//
// Memory of the engine has red zones around every allocation and knows which bytes were written. All functions may be
// called from any thread.
#pragma once

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
  //! \brief Bytes at the pointer, which bound all accesses. 0: memory of the engine, bounded by its allocation. Memory
  //! that is not of the engine needs its size: it is copied into the engine for the launch, and back afterwards.
  //! Less than 0: an integer.
  int64_t bytes;
  /*! \brief Name of the parameter in findings; may be NULL. */
  const char* name;
} UirSimtArg;

//! \brief Forget the kernels of a shared object, on whichever model they ran: before its file goes. What was never
//! launched is no error.
UIR_SIMT_API void uir_simt_unload(const char* library);

/*! \brief Free a text that another function gave. */
UIR_SIMT_API void uir_simt_free_text(char* text);

//! \brief Allocate device memory of the engine. Nothing in it counts as written.
//! \param alignment a power of two, at most 65536; at least 256 is given.
//! \param label names the memory in findings; may be NULL.
//! \return The address (readable and writable by the host too), or NULL when memory is exhausted.
UIR_SIMT_API void* uir_simt_alloc(size_t bytes, size_t alignment, const char* label);

/*! \brief Release memory of `uir_simt_alloc`. \return 0, or 1 when the address is no live allocation. */
UIR_SIMT_API int uir_simt_release(void* address);

//! \brief Copy between any two of host and engine memory; written bytes stay known.
//! Bytes copied from the host count as written, bytes copied within the engine keep their state.
//! \return 0, or 1 when a range leaves an allocation of the engine.
UIR_SIMT_API int uir_simt_copy(void* to, const void* from, size_t bytes);

/*! \brief Say that the host wrote the bytes. \return 0, or 1 when the range leaves its allocation. */
UIR_SIMT_API int uir_simt_mark_written(void* address, size_t bytes);

//! \brief Say whether bytes stand for values that nobody computed, as what a launch of times alone leaves does. Copies
//! within the engine carry it on; what the host copies there is no stand-in.
//! \return 0, or 1 when the range leaves its allocation.
UIR_SIMT_API int uir_simt_set_stand_in(void* address, size_t bytes, int stands_in);

/*! \brief 1 when any byte of the range is such a stand-in, else 0. */
UIR_SIMT_API int uir_simt_stands_in(const void* address, size_t bytes);

/*! \brief Offset of the first byte of the range that nothing wrote, or -1 when all are written (or not of the engine).
 */
UIR_SIMT_API int64_t uir_simt_first_unwritten(const void* address, size_t bytes);

/*! \brief 1 when the range lies in one live allocation of the engine, else 0. */
UIR_SIMT_API int uir_simt_contains(const void* address, size_t bytes);

#ifdef __cplusplus
}
#endif
