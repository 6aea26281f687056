// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/cublaslt_api.h"

#include <map>
#include <mutex>
#include <utility>

namespace uir::library::cuda::lt {

VendorLibrary& Shared() {
  static auto* library = new VendorLibrary("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, "nvidia-cublas");
  return *library;
}

const Api& Get() {
  static std::mutex mutex;
  // One for each file that was ever named: plans hold a reference to the one that they were made with.
  static auto* bound = new std::map<int, Api>();
  const int generation = Shared().generation();
  std::lock_guard<std::mutex> lock(mutex);
  auto found = bound->find(generation);
  if (found != bound->end()) return found->second;
  Api api;
#define UIR_CUBLASLT_BIND(name, ...) \
  api.name = reinterpret_cast<FunctionPointer<__VA_ARGS__>>(Shared().Symbol("cublasLt" #name));
  UIR_CUBLASLT_FUNCTIONS(UIR_CUBLASLT_BIND)
#undef UIR_CUBLASLT_BIND
  return bound->emplace(generation, api).first->second;
}

void Api::Check(int status, const char* call, const std::string& problem) const {
  if (status == 0) return;
  ThrowLibraryError(std::string("cuBLASLt: ") + call + " failed: " + GetStatusString(status) +
                        (problem.empty() ? "" : "\n  where:  " + problem),
                    "a problem that this release supports on this GPU",
                    "compute the product in a kernel of its own, or install another release of nvidia-cublas");
}

Handle HandleOf(int device_id) {
  static std::mutex mutex;
  static auto* handles = new std::map<std::pair<int, int>, Handle>();
  const Api& api = Get();
  std::lock_guard<std::mutex> lock(mutex);
  Handle& handle = (*handles)[{Shared().generation(), device_id}];
  if (!handle) api.Check(api.Create(&handle), "cublasLtCreate");
  return handle;
}

}  // namespace uir::library::cuda::lt
