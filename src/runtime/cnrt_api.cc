// SPDX-License-Identifier: Apache-2.0
#include "runtime/cnrt_api.h"

#include <dlfcn.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <type_traits>

#include "runtime/error.h"

namespace uir::runtime::cnrt {

namespace ffi = tvm::ffi;

namespace {

constexpr const char* kLibrary = "libcnrt.so";

struct Loaded {
  Api api;
  /*! \brief Why there is none; empty where there is. */
  std::string error;
};

std::string Said(const Api& api, Error result) {
  const char* text = api.GetErrorStr(result);
  std::string said = "error " + std::to_string(result);
  return text && *text ? said + ": " + text : said;
}

template <typename Slot>
void Find(void* library, const char* name, Slot* slot) {
  *slot = reinterpret_cast<Slot>(dlsym(library, name));
}

template <typename Slot>
void Bind(void* library, const char* name, Slot* slot, Loaded* out) {
  Find(library, name, slot);
  if (!*slot && out->error.empty()) out->error = std::string(kLibrary) + " has no " + name;
}

void BindAll(void* library, Loaded* out) {
  Api& api = out->api;
  Bind(library, "cnrtGetDeviceCount", &api.GetDeviceCount, out);
  Bind(library, "cnrtSetDevice", &api.SetDevice, out);
  Bind(library, "cnrtGetDeviceProperties", &api.GetDeviceProperties, out);
  Bind(library, "cnrtGetErrorStr", &api.GetErrorStr, out);
  Bind(library, "cnrtMalloc", &api.Malloc, out);
  Bind(library, "cnrtFree", &api.Free, out);
  Bind(library, "cnrtMemcpy", &api.Memcpy, out);
  Bind(library, "cnrtMemcpyAsync", &api.MemcpyAsync, out);
  Bind(library, "cnrtQueueCreate", &api.QueueCreate, out);
  Bind(library, "cnrtQueueDestroy", &api.QueueDestroy, out);
  Bind(library, "cnrtQueueSync", &api.QueueSync, out);
  Find(library, "cnrtGetLastError", &api.GetLastError);
  Find(library, "cnrtPeekAtLastError", &api.PeekAtLastError);
}

Loaded LoadOnce() {
  Loaded out;
  // never closed: its threads outlive us
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    out.error = dlerror();
    return out;
  }
  BindAll(library, &out);
  if (!out.error.empty()) return out;
  unsigned int count = 0;
  Error result = out.api.GetDeviceCount(&count);
  if (result != kSuccess) out.error = "cnrtGetDeviceCount: " + Said(out.api, result);
  if (out.error.empty() && count == 0) out.error = "the runtime knows no device";
  return out;
}

/*! \brief {"error": why there is no device (or ""), "name": the runtime's name of the first device}. */
ffi::Map<ffi::String, ffi::String> Describe() {
  std::string why;
  ffi::Map<ffi::String, ffi::String> out;
  const Api* api = Load(&why);
  out.Set("error", why);
  out.Set("name", api ? NameOf(0) : "");
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
    DeviceError({"There is no Cambricon MLU to run on.", "", "an MLU, its driver and the Neuware toolkit", why,
                 "run it where there is one, or on the host model: CompileOptions(device=\"model\")"});
  }
  return *api;
}

void Check(Error result, const char* call, const std::string& where) {
  if (result == kSuccess) return;
  DeviceError({std::string(call) + " failed.", where, "", Said(Require(), result), ""});
}

void UseDevice(int device) { Check(Require().SetDevice(device), "cnrtSetDevice", "device " + std::to_string(device)); }

std::string NameOf(int device) {
  Properties properties{};
  Check(Require().GetDeviceProperties(&properties, device), "cnrtGetDeviceProperties");
  properties.name[sizeof properties.name - 1] = 0;
  return properties.name;
}

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("uir.runtime.cnrt.describe", &Describe); }

}  // namespace uir::runtime::cnrt
