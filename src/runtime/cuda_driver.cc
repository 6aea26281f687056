// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_driver.h"

#include "base/vendor_library.h"
#include "runtime/error.h"

namespace uir::runtime::cuda {

namespace {

std::string Start(const Driver& driver) {
  const Result result = driver.Init(0);
  if (result == kSuccess) return "";
  const char* name = nullptr;
  const bool known = driver.GetErrorName(result, &name) == kSuccess && name;
  return "cuInit: " + (known ? std::string(name) : std::to_string(result));
}

/*! \brief The driver, which its installer puts where the loader looks. */
BoundApi<Driver>& Bound() {
  static auto* library = new VendorLibrary({"The driver of NVIDIA", {"libcuda.so.1"}, "", ""});
  static auto* bound = new BoundApi<Driver>(
      library,
      [](Driver* d) -> std::vector<LibrarySymbol> {
        return {{"cuInit", &d->Init},
                {"cuDriverGetVersion", &d->DriverGetVersion},
                {"cuDeviceGetCount", &d->DeviceGetCount},
                {"cuDeviceGet", &d->DeviceGet},
                {"cuDeviceGetName", &d->DeviceGetName},
                {"cuDeviceGetAttribute", &d->DeviceGetAttribute},
                {"cuDevicePrimaryCtxRetain", &d->DevicePrimaryCtxRetain},
                {"cuCtxGetCurrent", &d->CtxGetCurrent},
                {"cuCtxSetCurrent", &d->CtxSetCurrent},
                {"cuModuleLoadData", &d->ModuleLoadData},
                {"cuModuleUnload", &d->ModuleUnload},
                {"cuModuleGetFunction", &d->ModuleGetFunction},
                {"cuFuncGetAttribute", &d->FuncGetAttribute},
                {"cuFuncSetAttribute", &d->FuncSetAttribute},
                {"cuOccupancyMaxActiveBlocksPerMultiprocessor", &d->OccupancyMaxActiveBlocksPerMultiprocessor},
                {"cuLaunchKernel", &d->LaunchKernel},
                {"cuLaunchCooperativeKernel", &d->LaunchCooperativeKernel},
                {"cuGetErrorName", &d->GetErrorName},
                {"cuGetErrorString", &d->GetErrorString}};
      },
      Start);
  return *bound;
}

}  // namespace

const Driver* Load(std::string* why) { return Bound().Load(why); }

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
