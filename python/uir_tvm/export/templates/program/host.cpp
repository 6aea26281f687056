// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <cstdlib>
#include <string>

namespace {

std::string& LastError() {
  static std::string error;
  return error;
}

}  // namespace

void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  LastError() = std::string(kind) + ": " + message;
}

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  std::string message;
  for (int32_t i = 0; i < count; ++i) message += parts[i];
  TVMFFIErrorSetRaisedFromCStr(kind, message.c_str());
}

void* TVMBackendAllocWorkspace(int, int, uint64_t bytes, int, int) {
  constexpr uint64_t kAlignment = 64;
  return std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
}

int TVMBackendFreeWorkspace(int, int, void* data) {
  std::free(data);
  return 0;
}

namespace project {

void RunOnHost(const Device& device, HostFunction function, const std::vector<HostTensor>& tensors, size_t inputs) {
  constexpr int32_t kTensorPointer = 7;
  constexpr int32_t kCpu = 1;
  device.Synchronize();
  std::vector<std::vector<char>> copies;
  std::vector<DLTensor> described;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostTensor& tensor = tensors[i];
    size_t bytes = (tensor.type.bits + 7) / 8;
    for (int64_t extent : tensor.shape) bytes *= static_cast<size_t>(extent);
    copies.push_back(i < inputs ? CopyToHost(tensor.address, bytes) : std::vector<char>(bytes));
    described.push_back({copies.back().data(),
                         {kCpu, 0},
                         static_cast<int32_t>(tensor.shape.size()),
                         tensor.type,
                         const_cast<int64_t*>(tensor.shape.data()),
                         nullptr,
                         0});
  }
  std::vector<TVMFFIAny> args(tensors.size());
  for (size_t i = 0; i < args.size(); ++i) {
    args[i].type_index = kTensorPointer;
    args[i].v_ptr = &described[i];
  }
  TVMFFIAny result{};
  if (function(nullptr, args.data(), static_cast<int32_t>(args.size()), &result) != 0) throw Failure(LastError());
  for (size_t i = inputs; i < tensors.size(); ++i) CopyToDevice(tensors[i].address, copies[i]);
}

}  // namespace project
