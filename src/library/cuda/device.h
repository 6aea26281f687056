// SPDX-License-Identifier: Apache-2.0
// What the vendor's libraries need of TVM's CUDA runtime: the device, its stream, scratch memory.
#pragma once

#include <tvm/ffi/c_api.h>

#include <cstddef>

namespace uir::library::cuda {

/*! Make the device current on this thread. */
void UseDevice(DLDevice device);

/*! TVM's current stream of the device on this thread (cudaStream_t; null is the default stream). */
void* CurrentStream(DLDevice device);

//! At least `bytes` of device memory that belongs to the device and stream: work on one stream runs in order, so that
//! all of it may share one buffer. It only grows and is kept, so that a graph captured with it stays valid; null for 0
//! bytes.
void* Workspace(DLDevice device, void* stream, size_t bytes);

}  // namespace uir::library::cuda
