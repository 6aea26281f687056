// SPDX-License-Identifier: Apache-2.0
// What the stand-in of the Ascend runtime knows: its work, and its errors.
#pragma once

#include <cstddef>
#include <string>

#include "device/host/work.h"

namespace uir_acl {

//! Codes of the vendor's headers (error_codes/rt_error_codes.h, acl_base.h, aclnn return codes).
constexpr int kUninitialized = 100001;
constexpr int kRepeatInitialize = 100002;
constexpr int kRtParamInvalid = 107000;
constexpr int kRtContextNull = 107002;
constexpr int kRtAicoreException = 507015;
constexpr int kAclnnNullptr = 161001;
constexpr int kAclnnInvalid = 161002;
constexpr int kAclnnInner = 561103;

using uir_host::Event;
using uir_host::Stream;

//! The whole runtime; programs that use it have one thread.
struct State : uir_host::Work {
  bool initialized = false;
  bool device = false;
  std::string message;
  std::string returned;
};

State& Runtime();

//! Keeps the message for aclGetRecentErrMsg, and returns the code.
int Fail(int code, const std::string& message);

//! 0 with a device, else the code of an error.
int NeedDevice(const char* call);

//! Whether work is queued on some stream.
bool Pending();

//! Whether the range lies in one allocation.
bool OnDevice(const void* data, size_t bytes);

//! The stream of a handle, or null after keeping a message.
Stream* StreamOf(void* handle, const char* call);

}  // namespace uir_acl
