// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/cublaslt_api.h"

#include <map>
#include <mutex>
#include <utility>

namespace uir::library::cuda::lt {
namespace {

// What cuBLASLt's own documentation recommends for Hopper; smaller GPUs need less and lose nothing by it.
constexpr size_t kMaxWorkspace = size_t{32} << 20;

}  // namespace

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

Choice Choose(Handle handle, MatmulDesc desc, Layout a, Layout b, Layout d, int64_t alignment,
              const std::string& problem) {
  const Api& api = Get();
  Preference preference = nullptr;
  api.Check(api.MatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", problem);
  const auto bytes = static_cast<uint32_t>(alignment);
  int status = api.MatmulPreferenceSetAttribute(preference, kMaxWorkspaceBytes, &kMaxWorkspace, sizeof(size_t));
  for (int operand = 0; operand < 4 && status == 0; ++operand) {
    status = api.MatmulPreferenceSetAttribute(preference, static_cast<PreferenceAttribute>(kMinAlignmentA + operand),
                                              &bytes, sizeof(bytes));
  }
  HeuristicResult result{};
  int found = 0;
  if (status == 0) status = api.MatmulAlgoGetHeuristic(handle, desc, a, b, d, d, preference, 1, &result, &found);
  api.MatmulPreferenceDestroy(preference);
  api.Check(status, "cublasLtMatmulAlgoGetHeuristic", problem);
  if (found == 0)
    ThrowLibraryError("cuBLASLt has no algorithm for " + problem + ".", "another type or epilogue",
                      "compute the product in a kernel of its own");
  api.Check(result.state, "the algorithm of cublasLtMatmulAlgoGetHeuristic", problem);
  return {result.algo, result.workspace_bytes};
}

}  // namespace uir::library::cuda::lt
