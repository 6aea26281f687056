// SPDX-License-Identifier: Apache-2.0
// The runtime's functions: acl/acl.h and acl/acl_rt.h.
#include "acl/acl.h"
#include "device/ascendc/host/state.h"
#include "device/engine/engine_api.h"

namespace uir_acl {

State& Runtime() {
  static State state;
  return state;
}

int Fail(int code, const std::string& message) {
  // The latest stands first, as the vendor's runtime has it.
  State& state = Runtime();
  state.message = state.message.empty() ? message : message + "\n" + state.message;
  return code;
}

int NeedDevice(const char* call) {
  if (!Runtime().initialized) return Fail(kUninitialized, std::string(call) + ": aclInit was not called.");
  if (!Runtime().device) return Fail(kRtContextNull, std::string(call) + ": no device was set.");
  return 0;
}

bool Pending() { return Runtime().Pending(); }

bool OnDevice(const void* data, size_t bytes) { return Runtime().OnDevice(data, bytes); }

Stream* StreamOf(void* handle, const char* call) {
  if (handle == nullptr && NeedDevice(call) != 0) return nullptr;
  if (Stream* stream = Runtime().StreamOf(handle)) return stream;
  Fail(kRtParamInvalid, std::string(call) + ": no stream that aclrtCreateStream made.");
  return nullptr;
}

namespace {

int Leaks() {
  const std::string text = Runtime().Alive();
  return text.empty() ? 0 : Fail(kRtParamInvalid, "aclFinalize: not released: " + text + ".");
}

}  // namespace
}  // namespace uir_acl

using namespace uir_acl;

aclError aclInit(const char*) {
  if (Runtime().initialized) return Fail(kRepeatInitialize, "aclInit: called before.");
  Runtime().initialized = true;
  return 0;
}

aclError aclFinalize() {
  if (!Runtime().initialized) return Fail(kUninitialized, "aclFinalize: aclInit was not called.");
  const int leaks = Leaks();
  Runtime().initialized = false;
  Runtime().device = false;
  return leaks;
}

const char* aclGetRecentErrMsg() {
  State& state = Runtime();
  state.returned = std::move(state.message);
  state.message.clear();
  return state.returned.empty() ? nullptr : state.returned.c_str();
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  if (!Runtime().initialized) return Fail(kUninitialized, "aclrtGetDeviceCount: aclInit was not called.");
  *count = 1;
  return 0;
}

aclError aclrtSetDevice(int32_t deviceId) {
  if (!Runtime().initialized) return Fail(kUninitialized, "aclrtSetDevice: aclInit was not called.");
  if (deviceId != 0) return Fail(kRtParamInvalid, "aclrtSetDevice: the host model has one device, 0.");
  Runtime().device = true;
  return 0;
}

aclError aclrtResetDevice(int32_t deviceId) {
  if (const int code = NeedDevice("aclrtResetDevice")) return code;
  if (deviceId != 0) return Fail(kRtParamInvalid, "aclrtResetDevice: the host model has one device, 0.");
  Runtime().device = false;
  return 0;
}

aclError aclrtCreateStream(aclrtStream* stream) {
  if (const int code = NeedDevice("aclrtCreateStream")) return code;
  auto* made = new Stream();
  Runtime().streams.insert(made);
  *stream = made;
  return 0;
}

aclError aclrtDestroyStream(aclrtStream stream) {
  Stream* found = StreamOf(stream, "aclrtDestroyStream");
  if (found == nullptr) return kRtParamInvalid;
  const bool busy = !found->tasks.empty();
  Runtime().streams.erase(found);
  delete found;
  return busy ? Fail(kRtParamInvalid, "aclrtDestroyStream: work was queued on it.") : 0;
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  Stream* found = StreamOf(stream, "aclrtSynchronizeStream");
  return found == nullptr ? kRtParamInvalid : found->Drain();
}

aclError aclrtCreateEvent(aclrtEvent* event) {
  if (const int code = NeedDevice("aclrtCreateEvent")) return code;
  auto made = std::make_shared<Event>();
  *event = made.get();
  Runtime().events[*event] = std::move(made);
  return 0;
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  const auto found = Runtime().events.find(event);
  if (found == Runtime().events.end()) return Fail(kRtParamInvalid, "aclrtDestroyEvent: no event.");
  const bool busy = found->second->recorded && !found->second->reached;
  Runtime().events.erase(found);
  return busy ? Fail(kRtParamInvalid, "aclrtDestroyEvent: a stream has not reached it yet.") : 0;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  Stream* queue = StreamOf(stream, "aclrtRecordEvent");
  if (queue == nullptr) return kRtParamInvalid;
  if (Runtime().events.count(event) == 0) return Fail(kRtParamInvalid, "aclrtRecordEvent: no event.");
  Runtime().Record(Runtime().events[event], queue);
  return 0;
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  const auto& events = Runtime().events;
  for (void* event : {startEvent, endEvent}) {
    if (events.count(event) == 0) return Fail(kRtParamInvalid, "aclrtEventElapsedTime: no event.");
    if (!events.at(event)->reached)
      return Fail(kRtParamInvalid, "aclrtEventElapsedTime: the stream has not reached an event.");
  }
  *ms = static_cast<float>((events.at(endEvent)->seconds - events.at(startEvent)->seconds) * 1e3);
  return 0;
}

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  if (const int code = NeedDevice("aclrtMalloc")) return code;
  if (size == 0) return Fail(kRtParamInvalid, "aclrtMalloc: 0 bytes.");
  // The runtime rounds up to 32 bytes and adds 32.
  const size_t bytes = (size + 31) / 32 * 32 + 32;
  *devPtr = uir_simt_alloc(bytes, 64, "aclrtMalloc");
  if (*devPtr == nullptr) return Fail(kRtParamInvalid, "aclrtMalloc: no memory left.");
  Runtime().memory[*devPtr] = bytes;
  return 0;
}

aclError aclrtFree(void* devPtr) {
  if (const int code = NeedDevice("aclrtFree")) return code;
  if (Runtime().memory.count(devPtr) == 0) return Fail(kRtParamInvalid, "aclrtFree: no memory of aclrtMalloc.");
  if (Pending()) return Fail(kRtParamInvalid, "aclrtFree: work is queued that may use the memory.");
  Runtime().memory.erase(devPtr);
  uir_simt_release(devPtr);
  return 0;
}

//! Not for exported projects: what the runtime of compiled models asks for beside the functions of the headers.
extern "C" {

ACL_FUNC_VISIBILITY const char* aclrtGetSocName() { return "Ascend910B2"; }

ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                              aclrtMemcpyKind kind, aclrtStream stream) {
  Stream* queue = StreamOf(stream, "aclrtMemcpyAsync");
  if (queue == nullptr) return kRtParamInvalid;
  if (kind != ACL_MEMCPY_DEVICE_TO_DEVICE || count > destMax || !OnDevice(dst, count) || !OnDevice(src, count)) {
    return Fail(kRtParamInvalid, "aclrtMemcpyAsync: a copy that is not within the device's memory.");
  }
  queue->tasks.push_back([=](double*) { return uir_simt_copy(dst, src, count); });
  return 0;
}

}  // extern "C"

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  if (const int code = NeedDevice("aclrtMemcpy")) return code;
  const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  if (count > destMax) return Fail(kRtParamInvalid, "aclrtMemcpy: count exceeds destMax.");
  if (to_device != OnDevice(dst, count) || from_device != OnDevice(src, count)) {
    return Fail(kRtParamInvalid, "aclrtMemcpy: an address is not where the kind of copy says.");
  }
  if (Pending()) {
    return Fail(kRtParamInvalid, "aclrtMemcpy: work is queued, with which the copy is not ordered: synchronize first.");
  }
  if (from_device && uir_simt_first_unwritten(src, count) >= 0) {
    return Fail(kRtParamInvalid, "aclrtMemcpy: nothing wrote byte " +
                                     std::to_string(uir_simt_first_unwritten(src, count)) + " of the source.");
  }
  return uir_simt_copy(dst, src, count) == 0 ? 0 : Fail(kRtParamInvalid, "aclrtMemcpy: a range leaves its memory.");
}
