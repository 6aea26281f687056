// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/cudnn_api.h"

#include <map>
#include <mutex>
#include <utility>

namespace uir::library::cuda::dnn {

VendorLibrary& Shared() {
  static auto* library = new VendorLibrary("cuDNN", {"libcudnn.so.9", "libcudnn.so.8"}, "nvidia-cudnn-cu13");
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
#define UIR_CUDNN_BIND(name, ...) \
  api.name = reinterpret_cast<FunctionPointer<__VA_ARGS__>>(Shared().Symbol("cudnn" #name));
  UIR_CUDNN_FUNCTIONS(UIR_CUDNN_BIND)
#undef UIR_CUDNN_BIND
  return bound->emplace(generation, api).first->second;
}

void Api::Check(int status, const char* call, const std::string& problem) const {
  if (status == 0) return;
  ThrowLibraryError(std::string("cuDNN: ") + call + " failed: " + GetErrorString(status) +
                        (problem.empty() ? "" : "\n  where:  " + problem),
                    "a problem that this release supports on this GPU",
                    "compute the convolution in a kernel of its own, or install another release of nvidia-cudnn-cu13");
}

Handle HandleOf(int device_id) {
  thread_local auto* handles = new std::map<std::pair<int, int>, Handle>();
  const Api& api = Get();
  Handle& handle = (*handles)[{Shared().generation(), device_id}];
  if (!handle) api.Check(api.Create(&handle), "cudnnCreate");
  return handle;
}

}  // namespace uir::library::cuda::dnn
