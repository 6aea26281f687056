// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_driver.h"

#include <dlfcn.h>

#include "runtime/error.h"

namespace uir::runtime::cuda {

namespace {

/*! \brief Library of the driver, which its installer puts where the loader looks. */
constexpr const char* kLibrary = "libcuda.so.1";

struct Loaded {
  Driver driver;
  /*! \brief Why there is none; empty where there is. */
  std::string error;
};

Loaded LoadOnce() {
  Loaded out;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    out.error = dlerror();
    return out;
  }
  auto find = [&](auto* slot, const char* name) {
    void* symbol = dlsym(library, name);
    if (!symbol && out.error.empty()) out.error = std::string(kLibrary) + " has no " + name;
    *slot = reinterpret_cast<std::remove_pointer_t<decltype(slot)>>(symbol);
  };
  Driver& d = out.driver;
  find(&d.Init, "cuInit");
  find(&d.DriverGetVersion, "cuDriverGetVersion");
  find(&d.DeviceGetCount, "cuDeviceGetCount");
  find(&d.DeviceGet, "cuDeviceGet");
  find(&d.DeviceGetName, "cuDeviceGetName");
  find(&d.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(&d.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(&d.CtxGetCurrent, "cuCtxGetCurrent");
  find(&d.CtxSetCurrent, "cuCtxSetCurrent");
  find(&d.ModuleLoadData, "cuModuleLoadData");
  find(&d.ModuleUnload, "cuModuleUnload");
  find(&d.ModuleGetFunction, "cuModuleGetFunction");
  find(&d.FuncGetAttribute, "cuFuncGetAttribute");
  find(&d.FuncSetAttribute, "cuFuncSetAttribute");
  find(&d.OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(&d.LaunchKernel, "cuLaunchKernel");
  find(&d.LaunchCooperativeKernel, "cuLaunchCooperativeKernel");
  find(&d.GetErrorName, "cuGetErrorName");
  find(&d.GetErrorString, "cuGetErrorString");
  if (!out.error.empty()) return out;
  Result result = d.Init(0);
  if (result != kSuccess) {
    const char* name = nullptr;
    out.error = "cuInit: ";
    out.error += d.GetErrorName(result, &name) == kSuccess && name ? name : std::to_string(result);
  }
  return out;
}

}  // namespace

const Driver* Load(std::string* why) {
  static const Loaded loaded = LoadOnce();
  if (why) *why = loaded.error;
  return loaded.error.empty() ? &loaded.driver : nullptr;
}

const Driver& Require() {
  std::string why;
  const Driver* driver = Load(&why);
  if (!driver) {
    DeviceError({"There is no GPU to run on.", "", "a GPU of NVIDIA and its driver", why,
                 "run it where there is one, or on the host model: CompileOptions(device=\"model\")"});
  }
  return *driver;
}

std::string ErrorText(Result result) {
  const Driver* driver = Load();
  const char *name = nullptr, *text = nullptr;
  if (!driver || driver->GetErrorName(result, &name) != kSuccess || !name) return "error " + std::to_string(result);
  if (driver->GetErrorString(result, &text) != kSuccess || !text) return name;
  return std::string(name) + ": " + text;
}

void Check(Result result, const char* call, const std::string& where) {
  if (result == kSuccess) return;
  DeviceError({std::string(call) + " failed.", where, "", ErrorText(result), ""});
}

int Attribute(Device device, int attribute) {
  int value = 0;
  Check(Require().DeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

}  // namespace uir::runtime::cuda
