// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstdio>

namespace project {
namespace {

std::string Message(int64_t status, const char* call) {
  // The pointer is valid until the next call, and the call clears the message.
  const char* words = aclGetRecentErrMsg();
  std::string text = std::string(call) + " failed with " + std::to_string(status) + ".";
  return words != nullptr && *words != '\0' ? text + "\n" + words : text;
}

/*! In destructors, which must not throw: a failure is said, and the rest is released all the same. */
void CheckQuietly(int64_t status, const char* call) {
  if (status != ACL_SUCCESS) std::fprintf(stderr, "%s\n", Message(status, call).c_str());
}
#define RELEASE(call) CheckQuietly((call), #call)

template <typename Handle>
Handle* Made(Handle* handle, const char* call) {
  if (handle == nullptr) throw Failure(Message(-1, call));
  return handle;
}

}  // namespace

void Check(int64_t status, const char* call) {
  if (status != ACL_SUCCESS) throw Failure(Message(status, call));
}

Device::Device(int id) : id_(id) {
  CHECK_ACL(aclInit(nullptr));
  try {
    uint32_t count = 0;
    CHECK_ACL(aclrtGetDeviceCount(&count));
    if (id < 0 || static_cast<uint32_t>(id) >= count) {
      throw Failure("There is no device " + std::to_string(id) + ": this machine has " + std::to_string(count) + ".");
    }
    CHECK_ACL(aclrtSetDevice(id));
    CHECK_ACL(aclrtCreateStream(&stream_));
  } catch (...) {
    // Releases the device too, if it was taken.
    RELEASE(aclFinalize());
    throw;
  }
}

Device::~Device() {
  if (workspace_ != nullptr) RELEASE(aclrtFree(workspace_));
  RELEASE(aclrtDestroyStream(stream_));
  RELEASE(aclrtResetDevice(id_));
  RELEASE(aclFinalize());
}

void Device::Synchronize() const { CHECK_ACL(aclrtSynchronizeStream(stream_)); }

void* Device::Workspace(uint64_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > workspace_bytes_) {
    // Queued operators may still be using the old one.
    Synchronize();
    if (workspace_ != nullptr) CHECK_ACL(aclrtFree(workspace_));
    workspace_ = nullptr;
    workspace_bytes_ = 0;
    CHECK_ACL(aclrtMalloc(&workspace_, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    workspace_bytes_ = bytes;
  }
  return workspace_;
}

Drained::~Drained() { RELEASE(aclrtSynchronizeStream(stream_)); }

Memory::Memory(size_t bytes) {
  if (bytes != 0) CHECK_ACL(aclrtMalloc(&data_, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
}

Memory::~Memory() {
  if (data_ != nullptr) RELEASE(aclrtFree(data_));
}

void CopyToDevice(void* to, const std::vector<char>& from) {
  CHECK_ACL(aclrtMemcpy(to, from.size(), from.data(), from.size(), ACL_MEMCPY_HOST_TO_DEVICE));
}

std::vector<char> CopyToHost(const void* from, size_t bytes) {
  std::vector<char> data(bytes);
  CHECK_ACL(aclrtMemcpy(data.data(), bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  return data;
}

Timer::Timer() {
  CHECK_ACL(aclrtCreateEvent(&start_));
  try {
    CHECK_ACL(aclrtCreateEvent(&stop_));
  } catch (...) {
    RELEASE(aclrtDestroyEvent(start_));
    throw;
  }
}

Timer::~Timer() {
  RELEASE(aclrtDestroyEvent(start_));
  RELEASE(aclrtDestroyEvent(stop_));
}

void Timer::Start(const Device& device) { CHECK_ACL(aclrtRecordEvent(start_, device.stream())); }

void Timer::Stop(const Device& device) { CHECK_ACL(aclrtRecordEvent(stop_, device.stream())); }

float Timer::Milliseconds() const {
  float elapsed = 0.0F;
  CHECK_ACL(aclrtEventElapsedTime(&elapsed, start_, stop_));
  return elapsed;
}

View::View(void* data, int64_t elements, aclDataType type, const std::vector<int64_t>& shape,
           const std::vector<int64_t>& strides, int64_t offset, aclFormat format)
    : tensor_(
          Made(aclCreateTensor(shape.data(), shape.size(), type, strides.data(), offset, format, &elements, 1, data),
               "aclCreateTensor")) {}

View::~View() { RELEASE(aclDestroyTensor(tensor_)); }

Scalar::Scalar(float value) : value_(value), scalar_(Made(aclCreateScalar(&value_, ACL_FLOAT), "aclCreateScalar")) {}

Scalar::~Scalar() { RELEASE(aclDestroyScalar(scalar_)); }

Numbers::Numbers(const std::vector<int64_t>& values)
    : array_(Made(aclCreateIntArray(values.data(), values.size()), "aclCreateIntArray")) {}

Numbers::~Numbers() { RELEASE(aclDestroyIntArray(array_)); }

}  // namespace project
