// SPDX-License-Identifier: Apache-2.0
#include "library/onednn_api.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "base/vendor_library.h"

namespace uir::library::dnn {
namespace {

struct State {
  std::once_flag once;
  std::atomic<bool> tried{false}, enabled{true};
  std::mutex mutex;
  std::string path, error;
  std::unique_ptr<Api> api;
};

// Never destroyed: the owners of primitives may outlive every other static
// object.
State* TheState() {
  static State* state = new State();
  return state;
}

struct IsaName {
  int bits;
  const char* name;
};
constexpr IsaName kIsaNames[] = {
    {0x1, "sse41"},
    {0x3, "avx"},
    {0x7, "avx2"},
    {0xf, "avx2_vnni"},
    {0x1f, "avx2_vnni_2"},
    {0x27, "avx512_core"},
    {0x67, "avx512_core_vnni"},
    {0xe7, "avx512_core_bf16"},
    {0x1ef, "avx512_core_fp16"},
    {0xfef, "avx512_core_amx"},
    {0x1fef, "avx512_core_amx_fp16"},
};

std::string IsaText(int bits) {
  for (const IsaName& entry : kIsaNames) {
    if (entry.bits == bits) return entry.name;
  }
  return "isa" + std::to_string(bits);
}

// <prefix>/lib/libdnnl.so.3, where pip puts it, seen from
// <prefix>/lib/pythonX.Y/site-packages/<package>/<this library>.
std::string BesideThisLibrary() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&BesideThisLibrary), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  for (int i = 0; i < 4; ++i) {
    size_t slash = path.rfind('/');
    if (slash == std::string::npos) return "";
    path.resize(slash);
  }
  return path + "/libdnnl.so.3";
}

VendorLibrary& Shared() {
  // Local symbols: torch carries a oneDNN of another version inside itself.
  static auto* library = new VendorLibrary({"oneDNN",
                                            {BesideThisLibrary(), "libdnnl.so.3"},
                                            "pip install onednn-cpu-gomp",
                                            "pip install --upgrade onednn-cpu-gomp"});
  return *library;
}

std::unique_ptr<Api> Load(const std::string& first, std::string* error) {
  auto api = std::make_unique<Api>();
  Shared().SetPath(first);
#define UIR_ROW(name, ...) {"dnnl_" #name, &api->name},
  *error = Shared().Bind({UIR_ONEDNN_FUNCTIONS(UIR_ROW)});
#undef UIR_ROW
  if (!error->empty()) return nullptr;
  const Version* version = api->version();
  api->version_text =
      std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
  if (version->major != 3) {
    *error = "oneDNN " + api->version_text + " was found, version 3 is needed";
    return nullptr;
  }
  if (version->cpu_runtime == kRuntimeOpenMP) {
    // a library is searched with its dependencies, hence the OpenMP run-time that this very library uses
    *error = Shared().Bind(
        {{"omp_get_max_threads", &api->omp_get_max_threads}, {"omp_set_num_threads", &api->omp_set_num_threads}});
    if (!error->empty()) return nullptr;
  } else if (version->cpu_runtime != kRuntimeSequential) {
    *error =
        "oneDNN was built for a thread pool that cannot be told to use "
        "one thread; OpenMP or sequential is needed";
    return nullptr;
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(api->version), &info) && info.dli_fname) api->path = info.dli_fname;
  api->isa = IsaText(api->get_effective_cpu_isa());
  if (api->engine_create(&api->engine, kCpu, 0) != 0) {
    *error = "oneDNN has no CPU engine";
    return nullptr;
  }
  return api;
}

}  // namespace

const Api* Get() {
  State* state = TheState();
  std::call_once(state->once, [state] {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->tried = true;
    std::string error;
    state->api = Load(state->path, &error);
    if (!state->api) state->error = error;
  });
  return state->enabled ? state->api.get() : nullptr;
}

const Api& Loaded() { return *TheState()->api; }

std::string LoadError() {
  Get();
  State* state = TheState();
  if (!state->enabled) return "switched off";
  return state->error;
}

bool SetPath(const std::string& path) {
  State* state = TheState();
  std::lock_guard<std::mutex> lock(state->mutex);
  if (state->tried) return state->api && state->api->path == path;
  state->path = path;
  return true;
}

void SetEnabled(bool enabled) { TheState()->enabled = enabled; }

void Check(int status, const char* call) {
  if (status != 0) TVM_FFI_THROW(InternalError) << "oneDNN's " << call << " failed with status " << status;
}

SingleThread::SingleThread() {
  Get();
  const Api* api = TheState()->api.get();
  if (!api || !api->omp_get_max_threads) return;
  before_ = api->omp_get_max_threads();
  if (before_ != 1) api->omp_set_num_threads(1);
}

SingleThread::~SingleThread() {
  if (before_ > 1) TheState()->api->omp_set_num_threads(before_);
}

OwnedMd StridedMd(int ndims, const int64_t* dims, DataType type, const int64_t* strides) {
  MdHandle md = nullptr;
  Check(Loaded().memory_desc_create_with_strides(&md, ndims, dims, type, strides), "memory_desc_create_with_strides");
  return OwnedMd(md);
}

OwnedMd AnyMd(int ndims, const int64_t* dims, DataType type) {
  MdHandle md = nullptr;
  Check(Loaded().memory_desc_create_with_tag(&md, ndims, dims, type, kTagAny), "memory_desc_create_with_tag");
  return OwnedMd(md);
}

}  // namespace uir::library::dnn
