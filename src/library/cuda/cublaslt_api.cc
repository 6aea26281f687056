// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/cublaslt_api.h"

#include <map>
#include <mutex>
#include <utility>

namespace uir::library::cuda::lt {

VendorLibrary& Shared() {
  static auto* library = new VendorLibrary({"cuBLASLt",
                                            {"libcublasLt.so.13", "libcublasLt.so.12"},
                                            "pip install nvidia-cublas, or put its folder into LD_LIBRARY_PATH",
                                            "pip install --upgrade nvidia-cublas"});
  return *library;
}

const Api& Get() {
  static auto* api = new BoundApi<Api>(&Shared(), [](Api* api) -> std::vector<LibrarySymbol> {
#define UIR_ROW(name, ...) {"cublasLt" #name, &api->name},
    return {UIR_CUBLASLT_FUNCTIONS(UIR_ROW)};
#undef UIR_ROW
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
