// SPDX-License-Identifier: Apache-2.0
/*!
 * \file state.h
 * \brief What the stand-in of the Ascend runtime knows: streams with their queued work, events, memory, errors.
 *
 * Work on a stream is run when the stream is synchronized, not before: a program that forgets to wait reads memory that
 * nothing wrote, and is told so. Every handle is known by its address, so that a wrong one is an error, not a crash.
 */
#ifndef UIR_DEVICE_ASCENDC_HOST_STATE_H_
#define UIR_DEVICE_ASCENDC_HOST_STATE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

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

//! Work on a stream. It returns 0 or a code, and adds the seconds that it takes on the device, as far as modelled.
using Task = std::function<int(double* seconds)>;

struct Stream {
  std::deque<Task> tasks;
  double seconds = 0.0;
};

struct Event {
  bool recorded = false;
  bool reached = false;
  double seconds = 0.0;
};

//! The whole runtime; programs that use it have one thread.
struct State {
  bool initialized = false;
  bool device = false;
  //! The device's own stream, and those that programs made.
  Stream standard;
  std::set<Stream*> streams;
  //! Queued work keeps the events that it reaches.
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<void*, size_t> memory;
  //! Tensors, scalars, arrays and executors that live, by kind: leaks are said when the runtime ends.
  std::map<std::string, std::set<const void*>> handles;
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

#endif  // UIR_DEVICE_ASCENDC_HOST_STATE_H_
