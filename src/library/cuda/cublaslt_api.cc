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
  static auto* api = new BoundApi<Api>(&Shared(), [](VendorLibrary* library, Api* api) {
#define UIR_CUBLASLT_BIND(name, ...) \
  api->name = reinterpret_cast<FunctionPointer<__VA_ARGS__>>(library->Symbol("cublasLt" #name));
    UIR_CUBLASLT_FUNCTIONS(UIR_CUBLASLT_BIND)
#undef UIR_CUBLASLT_BIND
  });
  return api->Get();
}

void Api::Check(int status, const char* call, const std::string& problem) const {
  if (status != 0) Shared().ThrowFailed(call, GetStatusString(status), problem);
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
