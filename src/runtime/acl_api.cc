// SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_api.h"

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "base/vendor_library.h"
#include "runtime/error.h"

namespace uir::runtime::acl {

namespace ffi = tvm::ffi;

namespace {

std::string Said(const Api& api, Error result) {
  const char* text = api.GetRecentErrMsg ? api.GetRecentErrMsg() : nullptr;
  std::string said = "error " + std::to_string(result);
  return text && *text ? said + ": " + text : said;
}

std::string Start(const Api& api) {
  Error result = api.Init(nullptr);
  if (result != kSuccess && result != kRepeatInitialize) return "aclInit: " + Said(api, result);
  uint32_t count = 0;
  result = api.GetDeviceCount(&count);
  if (result != kSuccess) return "aclrtGetDeviceCount: " + Said(api, result);
  return count == 0 ? "the runtime knows no device" : "";
}

/*! \brief Its libraries, newest first: CANN 8.5 split the runtime off. */
BoundApi<Api>& Bound() {
  static auto* library = new VendorLibrary({"The Ascend runtime", {"libacl_rt.so", "libascendcl.so"}, "", ""});
  static auto* bound = new BoundApi<Api>(
      library,
      [](Api* api) -> std::vector<LibrarySymbol> {
        return {{"aclInit", &api->Init},
                {"aclGetRecentErrMsg", &api->GetRecentErrMsg},
                {"aclrtGetSocName", &api->GetSocName},
                {"aclrtGetDeviceCount", &api->GetDeviceCount},
                {"aclrtSetDevice", &api->SetDevice},
                {"aclrtSynchronizeStream", &api->SynchronizeStream},
                {"aclrtMalloc", &api->Malloc},
                {"aclrtFree", &api->Free},
                {"aclrtMemcpy", &api->Memcpy},
                {"aclrtMemcpyAsync", &api->MemcpyAsync},
                {"aclrtCreateStream", &api->CreateStream},
                {"aclrtDestroyStream", &api->DestroyStream},
                {"aclrtMallocHost", &api->MallocHost, true},
                {"aclrtFreeHost", &api->FreeHost, true},
                {"aclrtGetLastError", &api->GetLastError, true}};
      },
      Start);
  return *bound;
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

const Api* Load(std::string* why) { return Bound().Load(why); }

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
