// SPDX-License-Identifier: Apache-2.0
#include "runtime/cnrt_api.h"

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "base/vendor_library.h"
#include "runtime/error.h"

namespace uir::runtime::cnrt {

namespace ffi = tvm::ffi;

namespace {

std::string Said(const Api& api, Error result) {
  const char* text = api.GetErrorStr(result);
  std::string said = "error " + std::to_string(result);
  return text && *text ? said + ": " + text : said;
}

std::string Start(const Api& api) {
  unsigned int count = 0;
  Error result = api.GetDeviceCount(&count);
  if (result != kSuccess) return "cnrtGetDeviceCount: " + Said(api, result);
  return count == 0 ? "the runtime knows no device" : "";
}

BoundApi<Api>& Bound() {
  static auto* library = new VendorLibrary({"Cambricon's runtime", {"libcnrt.so"}, "", "", true});
  static auto* bound = new BoundApi<Api>(
      library,
      [](Api* api) -> std::vector<LibrarySymbol> {
        return {{"cnrtGetDeviceCount", &api->GetDeviceCount},
                {"cnrtSetDevice", &api->SetDevice},
                {"cnrtGetDeviceProperties", &api->GetDeviceProperties},
                {"cnrtGetErrorStr", &api->GetErrorStr},
                {"cnrtMalloc", &api->Malloc},
                {"cnrtFree", &api->Free},
                {"cnrtMemcpy", &api->Memcpy},
                {"cnrtMemcpyAsync", &api->MemcpyAsync},
                {"cnrtQueueCreate", &api->QueueCreate},
                {"cnrtQueueDestroy", &api->QueueDestroy},
                {"cnrtQueueSync", &api->QueueSync},
                {"cnrtHostMalloc", &api->HostMalloc, true},
                {"cnrtFreeHost", &api->FreeHost, true},
                {"cnrtGetLastError", &api->GetLastError, true},
                {"cnrtPeekAtLastError", &api->PeekAtLastError, true}};
      },
      Start);
  return *bound;
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

const Api* Load(std::string* why) { return Bound().Load(why); }

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
