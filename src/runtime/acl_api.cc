// SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_api.h"

#include <dlfcn.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <type_traits>

#include "runtime/error.h"

namespace uir::runtime::acl {

namespace ffi = tvm::ffi;

namespace {

/*! \brief Libraries that have the functions, newest first: CANN 8.5 split the runtime off. */
constexpr const char* kLibraries[] = {"libacl_rt.so", "libascendcl.so"};

struct Loaded {
  Api api;
  /*! \brief Why there is none; empty where there is. */
  std::string error;
};

std::string Said(const Api& api, Error result) {
  const char* text = api.GetRecentErrMsg ? api.GetRecentErrMsg() : nullptr;
  std::string said = "error " + std::to_string(result);
  return text && *text ? said + ": " + text : said;
}

void Bind(void* library, const char* name, Loaded* out) {
  Api& api = out->api;
  auto find = [&](auto* slot, const char* symbol_name) {
    void* symbol = dlsym(library, symbol_name);
    if (!symbol && out->error.empty()) out->error = std::string(name) + " has no " + symbol_name;
    *slot = reinterpret_cast<std::remove_pointer_t<decltype(slot)>>(symbol);
  };
  find(&api.Init, "aclInit");
  find(&api.GetRecentErrMsg, "aclGetRecentErrMsg");
  find(&api.GetSocName, "aclrtGetSocName");
  find(&api.GetDeviceCount, "aclrtGetDeviceCount");
  find(&api.SetDevice, "aclrtSetDevice");
  find(&api.SynchronizeStream, "aclrtSynchronizeStream");
  find(&api.Malloc, "aclrtMalloc");
  find(&api.Free, "aclrtFree");
  find(&api.Memcpy, "aclrtMemcpy");
  find(&api.MemcpyAsync, "aclrtMemcpyAsync");
  find(&api.CreateStream, "aclrtCreateStream");
  find(&api.DestroyStream, "aclrtDestroyStream");
  api.GetLastError = reinterpret_cast<decltype(api.GetLastError)>(dlsym(library, "aclrtGetLastError"));
}

Loaded LoadOnce() {
  Loaded out;
  for (const char* name : kLibraries) {
    // never closed: its threads outlive us
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      out.error.clear();
      Bind(library, name, &out);
      break;
    }
    out.error = dlerror();
  }
  if (!out.error.empty()) return out;
  Error result = out.api.Init(nullptr);
  if (result != kSuccess && result != kRepeatInitialize) {
    out.error = "aclInit: " + Said(out.api, result);
    return out;
  }
  uint32_t count = 0;
  result = out.api.GetDeviceCount(&count);
  if (result != kSuccess) out.error = "aclrtGetDeviceCount: " + Said(out.api, result);
  if (out.error.empty() && count == 0) out.error = "the runtime knows no device";
  return out;
}

/*! \brief {"error": why there is no device (or ""), "soc": the toolkit's name of the device}. */
ffi::Map<ffi::String, ffi::String> Describe() {
  std::string why;
  ffi::Map<ffi::String, ffi::String> out;
  const Api* api = Load(&why);
  const char* name = api ? api->GetSocName() : nullptr;
  out.Set("error", why);
  out.Set("soc", name ? name : "");
  return out;
}

}  // namespace

const Api* Load(std::string* why) {
  static const Loaded loaded = LoadOnce();
  if (why) *why = loaded.error;
  return loaded.error.empty() ? &loaded.api : nullptr;
}

const Api& Require() {
  std::string why;
  const Api* api = Load(&why);
  if (!api) {
    DeviceError({"There is no Ascend NPU to run on.", "", "an NPU, its driver and the CANN toolkit", why,
                 "run it where there is one, or on the host model: CompileOptions(device=\"model\")"});
  }
  return *api;
}

void Check(Error result, const char* call, const std::string& where) {
  if (result == kSuccess) return;
  DeviceError({std::string(call) + " failed.", where, "", Said(Require(), result), ""});
}

void UseDevice(int device) { Check(Require().SetDevice(device), "aclrtSetDevice", "device " + std::to_string(device)); }

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("uir.runtime.acl.describe", &Describe); }

}  // namespace uir::runtime::acl
