// SPDX-License-Identifier: Apache-2.0
// The part of Cambricon's runtime (CNRT) that holds memory and waits for queues, loaded when it is first asked
// for.
//
// Declared here rather than included, so that the library builds and loads where there is no toolkit.  Signatures and
// values are those of cnrt.h 6.0 (CNToolkit 3 and 4); GetLastError and PeekAtLastError as mlu-ops calls them.
#pragma once

#include <cstddef>
#include <string>

namespace uir::runtime::cnrt {

using Error = int;
using Queue = void*;

constexpr Error kSuccess = 0;

/*! \brief cnrtMemTransDir_t. */
enum class Direction : int { kHostToDevice = 0, kDeviceToDevice = 1, kDeviceToHost = 2 };

/*! \brief cnrtDeviceProp_t: what it begins with, the device's name, and room for what releases put behind. */
struct Properties {
  char name[256];
  char rest[3840];
};

/*! \brief The functions, by their names without `cnrt`. */
struct Api {
  Error (*GetDeviceCount)(unsigned int* count) = nullptr;
  Error (*SetDevice)(int device) = nullptr;
  Error (*GetDeviceProperties)(Properties* properties, int device) = nullptr;
  const char* (*GetErrorStr)(Error error) = nullptr;
  Error (*Malloc)(void** data, size_t bytes) = nullptr;
  Error (*Free)(void* data) = nullptr;
  Error (*Memcpy)(void* to, void* from, size_t bytes, Direction direction) = nullptr;
  Error (*MemcpyAsync)(void* to, void* from, size_t bytes, Queue queue, Direction direction) = nullptr;
  /*! \brief Page-locked memory of the host, from which copies are asynchronous.  nullptr: a release without it. */
  Error (*HostMalloc)(void** data, size_t bytes) = nullptr;
  Error (*FreeHost)(void* data) = nullptr;
  Error (*QueueCreate)(Queue* queue) = nullptr;
  Error (*QueueDestroy)(Queue queue) = nullptr;
  Error (*QueueSync)(Queue queue) = nullptr;
  /*! \brief What the calling thread's launches met; the first forgets it.  nullptr: a release without them. */
  Error (*GetLastError)() = nullptr;
  Error (*PeekAtLastError)() = nullptr;
};

/*! \brief The runtime, on a machine with a device; nullptr elsewhere, and `why` says so. */
const Api* Load(std::string* why = nullptr);

/*! \brief The runtime.
 *  \throws DeviceError There is none. */
const Api& Require();

/*! \brief Throws a DeviceError that names the call and says what CNRT says, unless the result is a success. */
void Check(Error result, const char* call, const std::string& where = "");

/*! \brief Makes a device the calling thread's own, as CNRT wants of every thread before other calls. */
void UseDevice(int device);

/*! \brief The runtime's name of a device, such as "MLU370-X8". */
std::string NameOf(int device);

}  // namespace uir::runtime::cnrt
