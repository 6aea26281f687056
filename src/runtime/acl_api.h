// SPDX-License-Identifier: Apache-2.0
// The part of the Ascend runtime (ACL) that holds memory and launches kernels, loaded when it is first asked
// for.
//
// Declared here rather than included, so that the library builds and loads where there is no toolkit.  Signatures and
// values are those of acl_rt.h and acl_base_rt.h of CANN (API reference, "Kernel loading and execution", "Memory
// management", "Stream management"; the runtime's public sources are at https://gitcode.com/cann/runtime).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace uir::runtime::acl {

using Error = int;
using Stream = void*;

constexpr Error kSuccess = 0;
/*! \brief `aclInit` was called before, by us or by another library of the process. */
constexpr Error kRepeatInitialize = 100002;
/*! \brief ACL_RT_THREAD_LEVEL. */
constexpr int kThreadLevel = 0;
/*! \brief ACL_MEM_MALLOC_HUGE_FIRST. */
constexpr int kMallocHugeFirst = 0;

/*! \brief aclrtMemcpyKind. */
enum class CopyKind : int { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

/*! \brief The functions, by their names without `acl` and `aclrt`. */
struct Api {
  Error (*Init)(const char* config_path) = nullptr;
  const char* (*GetRecentErrMsg)() = nullptr;
  const char* (*GetSocName)() = nullptr;
  Error (*GetDeviceCount)(uint32_t* count) = nullptr;
  Error (*SetDevice)(int32_t device) = nullptr;
  Error (*SynchronizeStream)(Stream stream) = nullptr;
  Error (*Malloc)(void** data, size_t size, int policy) = nullptr;
  Error (*Free)(void* data) = nullptr;
  Error (*Memcpy)(void* to, size_t to_bytes, const void* from, size_t bytes, CopyKind kind) = nullptr;
  Error (*MemcpyAsync)(void* to, size_t to_bytes, const void* from, size_t bytes, CopyKind kind,
                       Stream stream) = nullptr;
  /*! \brief Page-locked memory of the host, from which copies are asynchronous.  nullptr: a release without it. */
  Error (*MallocHost)(void** data, size_t bytes) = nullptr;
  Error (*FreeHost)(void* data) = nullptr;
  Error (*CreateStream)(Stream* stream) = nullptr;
  Error (*DestroyStream)(Stream stream) = nullptr;
  /*! \brief What the calling thread's launches met; it is forgotten then.  nullptr: a release without it. */
  Error (*GetLastError)(int level) = nullptr;
};

/*! \brief The runtime, loaded and initialised, on a machine with a device; nullptr elsewhere, and `why` says so. */
const Api* Load(std::string* why = nullptr);

/*! \brief The runtime.
 *  \throws DeviceError There is none. */
const Api& Require();

/*! \brief Throws a DeviceError that names the call and says what ACL says, unless the result is a success. */
void Check(Error result, const char* call, const std::string& where = "");

/*! \brief Makes a device the calling thread's own, as ACL wants of every thread before other calls. */
void UseDevice(int device);

}  // namespace uir::runtime::acl
