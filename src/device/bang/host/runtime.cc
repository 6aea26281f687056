// SPDX-License-Identifier: Apache-2.0
// The runtime's functions: cnrt.h, and launches.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "device/bang/bang.h"
#include "device/bang/host/state.h"
#include "device/engine/engine_api.h"
#include "uir_cnrt/launch.h"

namespace uir_cnrt {

State::~State() {
  const std::string left = Alive();
  if (left.empty()) return;
  // there is no call that ends CNRT: what is left is said when the program ends, which then fails
  std::fprintf(stderr, "cnrt: not released: %s.\n", left.c_str());
  std::_Exit(4);
}

State& Runtime() {
  static State state;
  return state;
}

cnrtRet_t Fail(cnrtRet_t code, const std::string& message) {
  Runtime().message = message;
  return code;
}

Stream* QueueOf(cnrtQueue_t handle, const char* call) {
  if (Stream* queue = Runtime().StreamOf(handle)) return queue;
  Fail(cnrtErrorInvalidResourceHandle, std::string(call) + ": no queue that cnrtQueueCreate made.");
  return nullptr;
}

namespace {

cnrtRet_t NoQueue() { return cnrtErrorInvalidResourceHandle; }

int Run(const UirCnrtKernel& kernel, const std::vector<void*>& values, double* seconds) {
  const auto tensors = static_cast<size_t>(kernel.num_args - kernel.num_sizes);
  std::vector<UirSimtArg> args(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (i < tensors && !Runtime().OnDevice(values[i], 1)) {
      return Fail(cnrtErrorArgsInvalid,
                  std::string(kernel.kernel) + ": argument " + kernel.names[i] + " is no device memory.");
    }
    args[i] = {values[i], i < tensors ? 0 : -1, kernel.names[i]};
  }
  UirBangLaunch launch{};
  launch.library = kernel.library;
  launch.kernel = kernel.kernel;
  launch.args = args.data();
  launch.num_args = static_cast<int32_t>(args.size());
  // the launcher says how many tasks there are
  launch.groups = 0;
  launch.units = 0;
  launch.device = kernel.device;
  char* text = nullptr;
  const int found = uir_bang_launch(&launch, &text);
  const std::string result = text == nullptr ? "" : text;
  uir_simt_free_text(text);
  *seconds += uir_host::ModelledSeconds(result.c_str());
  return found == 0 ? 0 : Fail(cnrtErrorUnknown, std::string(kernel.kernel) + ": the host model found " + result);
}

}  // namespace
}  // namespace uir_cnrt

using namespace uir_cnrt;

const char* cnrtGetErrorStr(cnrtRet_t errCode) { return errCode == cnrtSuccess ? "" : Runtime().message.c_str(); }

cnrtRet_t cnrtGetDeviceCount(unsigned int* pCount) {
  *pCount = 1;
  return cnrtSuccess;
}

cnrtRet_t cnrtSetDevice(int ordinal) {
  return ordinal == 0 ? cnrtSuccess : Fail(cnrtErrorDeviceInvalid, "cnrtSetDevice: the host model has one device, 0.");
}

cnrtRet_t cnrtMalloc(void** pPtr, size_t bytes) {
  if (bytes == 0) return Fail(cnrtErrorArgsInvalid, "cnrtMalloc: 0 bytes.");
  *pPtr = uir_simt_alloc(bytes, 256, "cnrtMalloc");
  if (*pPtr == nullptr) return Fail(cnrtErrorNoMem, "cnrtMalloc: no memory left.");
  Runtime().memory[*pPtr] = bytes;
  return cnrtSuccess;
}

cnrtRet_t cnrtFree(void* ptr) {
  if (Runtime().memory.count(ptr) == 0) return Fail(cnrtErrorArgsInvalid, "cnrtFree: no memory of cnrtMalloc.");
  if (Runtime().Pending()) return Fail(cnrtErrorArgsInvalid, "cnrtFree: work is queued that may use the memory.");
  Runtime().memory.erase(ptr);
  uir_simt_release(ptr);
  return cnrtSuccess;
}

cnrtRet_t cnrtMemcpy(void* dst, void* src, size_t bytes, cnrtMemTransDir_t dir) {
  const bool to_device = dir != cnrtMemcpyDevToHost;
  const bool from_device = dir != cnrtMemcpyHostToDev;
  State& state = Runtime();
  if (to_device != state.OnDevice(dst, bytes) || from_device != state.OnDevice(src, bytes)) {
    return Fail(cnrtErrorMemcpyDirectionInvalid, "cnrtMemcpy: an address is not where the direction says.");
  }
  if (state.Pending()) {
    return Fail(cnrtErrorArgsInvalid, "cnrtMemcpy: work is queued, with which the copy is not ordered: synchronize.");
  }
  if (from_device && uir_simt_first_unwritten(src, bytes) >= 0) {
    return Fail(cnrtErrorArgsInvalid, "cnrtMemcpy: nothing wrote byte " +
                                          std::to_string(uir_simt_first_unwritten(src, bytes)) + " of the source.");
  }
  if (uir_simt_copy(dst, src, bytes) == 0) return cnrtSuccess;
  return Fail(cnrtErrorArgsInvalid, "cnrtMemcpy: a range leaves its memory.");
}

cnrtRet_t cnrtQueueCreate(cnrtQueue_t* pQueue) {
  auto* made = new Stream();
  Runtime().streams.insert(made);
  *pQueue = reinterpret_cast<cnrtQueue_t>(made);
  return cnrtSuccess;
}

cnrtRet_t cnrtQueueDestroy(cnrtQueue_t queue) {
  Stream* found = queue == nullptr ? nullptr : QueueOf(queue, "cnrtQueueDestroy");
  if (found == nullptr) return NoQueue();
  const bool busy = !found->tasks.empty();
  Runtime().streams.erase(found);
  delete found;
  return busy ? Fail(cnrtErrorArgsInvalid, "cnrtQueueDestroy: work was queued on it.") : cnrtSuccess;
}

cnrtRet_t cnrtQueueSync(cnrtQueue_t queue) {
  Stream* found = QueueOf(queue, "cnrtQueueSync");
  return found == nullptr ? NoQueue() : static_cast<cnrtRet_t>(found->Drain());
}

cnrtRet_t cnrtNotifierCreate(cnrtNotifier_t* pNotifier) {
  auto made = std::make_shared<Event>();
  *pNotifier = reinterpret_cast<cnrtNotifier_t>(made.get());
  Runtime().events[*pNotifier] = std::move(made);
  return cnrtSuccess;
}

cnrtRet_t cnrtNotifierDestroy(cnrtNotifier_t notifier) {
  const auto found = Runtime().events.find(notifier);
  if (found == Runtime().events.end()) return Fail(cnrtErrorInvalidResourceHandle, "cnrtNotifierDestroy: no notifier.");
  const bool busy = found->second->recorded && !found->second->reached;
  Runtime().events.erase(found);
  return busy ? Fail(cnrtErrorArgsInvalid, "cnrtNotifierDestroy: a queue has not reached it yet.") : cnrtSuccess;
}

cnrtRet_t cnrtPlaceNotifier(cnrtNotifier_t notifier, cnrtQueue_t queue) {
  Stream* found = QueueOf(queue, "cnrtPlaceNotifier");
  if (found == nullptr) return NoQueue();
  const auto event = Runtime().events.find(notifier);
  if (event == Runtime().events.end()) return Fail(cnrtErrorInvalidResourceHandle, "cnrtPlaceNotifier: no notifier.");
  Runtime().Record(event->second, found);
  return cnrtSuccess;
}

cnrtRet_t cnrtNotifierDuration(cnrtNotifier_t start, cnrtNotifier_t end, float* us) {
  const auto& events = Runtime().events;
  for (cnrtNotifier_t one : {start, end}) {
    const auto event = events.find(one);
    if (event == events.end()) return Fail(cnrtErrorInvalidResourceHandle, "cnrtNotifierDuration: no notifier.");
    if (!event->second->reached) {
      return Fail(cnrtErrorArgsInvalid, "cnrtNotifierDuration: the queue has not reached a notifier.");
    }
  }
  *us = static_cast<float>((events.at(end)->seconds - events.at(start)->seconds) * 1e6);
  return cnrtSuccess;
}

void uir_cnrt_launch(const UirCnrtKernel* kernel, cnrtQueue_t queue, void* const* args) {
  Stream* found = QueueOf(queue, "a launch");
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", Runtime().message.c_str());
    std::abort();  // as a launch has no result
  }
  const std::vector<void*> values(args, args + kernel->num_args);
  found->tasks.push_back([kernel = *kernel, values](double* seconds) { return Run(kernel, values, seconds); });
}
