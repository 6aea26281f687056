// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstdio>

namespace project {
namespace {

std::string Message(cnrtRet_t status, const char* call) {
  const char* words = cnrtGetErrorStr(status);
  std::string text = std::string(call) + " failed with " + std::to_string(static_cast<int>(status)) + ".";
  return words != nullptr && *words != '\0' ? text + "\n" + words : text;
}

/*! In destructors, which must not throw: a failure is said, and the rest is released all the same. */
void CheckQuietly(cnrtRet_t status, const char* call) {
  if (status != cnrtSuccess) std::fprintf(stderr, "%s\n", Message(status, call).c_str());
}
#define RELEASE(call) CheckQuietly((call), #call)

}  // namespace

void Check(cnrtRet_t status, const char* call) {
  if (status != cnrtSuccess) throw Failure(Message(status, call));
}

Device::Device(int id) {
  unsigned int count = 0;
  CHECK_CNRT(cnrtGetDeviceCount(&count));
  if (id < 0 || static_cast<unsigned int>(id) >= count) {
    throw Failure("There is no device " + std::to_string(id) + ": this machine has " + std::to_string(count) + ".");
  }
  CHECK_CNRT(cnrtSetDevice(id));
  CHECK_CNRT(cnrtQueueCreate(&queue_));
}

Device::~Device() {
  attached.reset();
  RELEASE(cnrtQueueDestroy(queue_));
}

void Device::Synchronize() const { CHECK_CNRT(cnrtQueueSync(queue_)); }

Drained::~Drained() { RELEASE(cnrtQueueSync(queue_)); }

Memory::Memory(size_t bytes) {
  if (bytes != 0) CHECK_CNRT(cnrtMalloc(&data_, bytes));
}

Memory::~Memory() {
  if (data_ != nullptr) RELEASE(cnrtFree(data_));
}

// The runtime declares sources of copies as if it wrote them.
void CopyToDevice(void* to, const std::vector<char>& from) {
  CHECK_CNRT(cnrtMemcpy(to, const_cast<char*>(from.data()), from.size(), cnrtMemcpyHostToDev));
}

std::vector<char> CopyToHost(const void* from, size_t bytes) {
  std::vector<char> data(bytes);
  CHECK_CNRT(cnrtMemcpy(data.data(), const_cast<void*>(from), bytes, cnrtMemcpyDevToHost));
  return data;
}

Timer::Timer() {
  CHECK_CNRT(cnrtNotifierCreate(&start_));
  try {
    CHECK_CNRT(cnrtNotifierCreate(&stop_));
  } catch (...) {
    RELEASE(cnrtNotifierDestroy(start_));
    throw;
  }
}

Timer::~Timer() {
  RELEASE(cnrtNotifierDestroy(start_));
  RELEASE(cnrtNotifierDestroy(stop_));
}

void Timer::Start(const Device& device) { CHECK_CNRT(cnrtPlaceNotifier(start_, device.queue())); }

void Timer::Stop(const Device& device) { CHECK_CNRT(cnrtPlaceNotifier(stop_, device.queue())); }

float Timer::Milliseconds() const {
  float microseconds = 0.0F;
  CHECK_CNRT(cnrtNotifierDuration(start_, stop_, &microseconds));
  return microseconds / 1000.0F;
}

}  // namespace project
