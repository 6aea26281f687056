// SPDX-License-Identifier: Apache-2.0
// What GPUs there are, without making a context on any.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "runtime/cuda_driver.h"
#include "runtime/cuda_launch.h"

namespace uir::runtime::cuda {

namespace {

using Fields = ffi::Map<ffi::String, ffi::Any>;

Fields DescribeDevice(const Driver& driver, int ordinal) {
  Device device = 0;
  Check(driver.DeviceGet(&device, ordinal), "cuDeviceGet");
  char name[256] = "";
  Check(driver.DeviceGetName(name, sizeof(name), device), "cuDeviceGetName");
  Fields out;
  out.Set("name", ffi::String(name));
  out.Set("arch", ffi::String(ArchOf(device)));
  out.Set("sms", static_cast<int64_t>(Attribute(device, kDeviceMultiprocessorCount)));
  return out;
}

/*! \brief {"error": why there is no GPU (or ""), "driver": version of CUDA (13000), "devices": [{name, arch, sms}]}. */
Fields Describe() {
  Fields out;
  std::string why;
  ffi::Array<Fields> devices;
  int version = 0, count = 0;
  if (const Driver* driver = Load(&why)) {
    driver->DriverGetVersion(&version);
    Result result = driver->DeviceGetCount(&count);
    if (result != kSuccess) why = "cuDeviceGetCount: " + ErrorText(result);
    for (int k = 0; why.empty() && k < count; ++k) devices.push_back(DescribeDevice(*driver, k));
    if (why.empty() && count == 0) why = "the driver knows no GPU";
  }
  out.Set("error", ffi::String(why));
  out.Set("driver", static_cast<int64_t>(version));
  out.Set("devices", devices);
  return out;
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("uir.runtime.cuda.describe", &Describe); }

}  // namespace uir::runtime::cuda
