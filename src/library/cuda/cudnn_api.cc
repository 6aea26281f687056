// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/cudnn_api.h"

#include <map>
#include <utility>

namespace uir::library::cuda::dnn {

VendorLibrary& Shared() {
  static auto* library = new VendorLibrary({"cuDNN",
                                            {"libcudnn.so.9", "libcudnn.so.8"},
                                            "pip install nvidia-cudnn-cu13, or put its folder into LD_LIBRARY_PATH",
                                            "pip install --upgrade nvidia-cudnn-cu13"});
  return *library;
}

const Api& Get() {
  static auto* api = new BoundApi<Api>(&Shared(), [](Api* api) -> std::vector<LibrarySymbol> {
#define UIR_ROW(name, ...) {"cudnn" #name, &api->name},
    return {UIR_CUDNN_FUNCTIONS(UIR_ROW)};
#undef UIR_ROW
  });
  return api->Get();
}

void Api::Check(int status, const char* call, const std::string& problem) const {
  if (status != 0) Shared().ThrowFailed(call, GetErrorString(status), problem);
}

Handle HandleOf(int device_id) {
  thread_local auto* handles = new std::map<std::pair<int, int>, Handle>();
  const Api& api = Get();
  Handle& handle = (*handles)[{Shared().generation(), device_id}];
  if (!handle) api.Check(api.Create(&handle), "cudnnCreate");
  return handle;
}

}  // namespace uir::library::cuda::dnn
