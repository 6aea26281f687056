// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_launch.h"

#include <dlpack/dlpack.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/reflection/registry.h>

#include "runtime/error.h"

namespace uir::runtime::cuda {

namespace {

/*! \brief "sm_90a" as major version, minor version and suffix; -1 where it is no such name. */
struct Arch {
  int major = -1;
  int minor = -1;
  std::string suffix;

  explicit Arch(const std::string& name) {
    if (name.rfind("sm_", 0) != 0) return;
    size_t end = name.find_first_not_of("0123456789", 3);
    std::string digits = name.substr(3, end == std::string::npos ? end : end - 3);
    if (digits.size() < 2) return;
    major = std::stoi(digits.substr(0, digits.size() - 1));
    minor = digits.back() - '0';
    if (end != std::string::npos) suffix = name.substr(end);
  }
};

/*! \brief The primary context of a device, which TVM's CUDA runtime uses too. */
Context PrimaryContext(Device device) {
  // kept to the end of the process, as the runtime API keeps it
  Context context = nullptr;
  Check(Require().DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  return context;
}

Device DeviceAt(int ordinal) {
  Device device = 0;
  Check(Require().DeviceGet(&device, ordinal), "cuDeviceGet");
  return device;
}

Context CurrentContext() {
  Context current = nullptr;
  Check(Require().CtxGetCurrent(&current), "cuCtxGetCurrent");
  return current;
}

void MakeCurrent(Context context) {
  if (CurrentContext() != context) Check(Require().CtxSetCurrent(context), "cuCtxSetCurrent");
}

/*! \brief Refuses a kernel whose blocks wait for each other and are not all on the GPU at once: it would not end. */
void CheckResident(Function function, const LaunchSpec& launch, int64_t grid, Device device) {
  if (!Attribute(device, kDeviceCooperativeLaunch)) {
    DeviceError({"A kernel waits for all blocks, which the GPU cannot launch at once.", launch.name,
                 "cooperative launch", "", "compile it without the attribute cooperative"});
  }
  int blocks = 0;
  Check(Require().OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(launch.block),
                                                            static_cast<size_t>(launch.shared_bytes)),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", launch.name);
  int64_t units = Attribute(device, kDeviceMultiprocessorCount);
  if (grid > blocks * units) {
    DeviceError({"A kernel waits for all blocks, which do not fit on the GPU at once.", launch.name,
                 std::to_string(grid) + " blocks of " + std::to_string(launch.block) + " threads and " +
                     std::to_string(launch.shared_bytes) + " bytes of shared memory",
                 std::to_string(blocks) + " on each of " + std::to_string(units) + " multiprocessors",
                 "compile it for the hardware model of this GPU"});
  }
}

Function Prepared(Module module, const LaunchSpec& launch, Device device) {
  const Driver& driver = Require();
  Function function = nullptr;
  Check(driver.ModuleGetFunction(&function, module, launch.name.c_str()), "cuModuleGetFunction", launch.name);
  if (launch.shared_bytes > kSharedBytesWithoutOptin) {
    int limit = Attribute(device, kDeviceMaxSharedBytesOptin);
    if (launch.shared_bytes > limit) {
      DeviceError({"A kernel needs more shared memory than the GPU has.", launch.name,
                   std::to_string(launch.shared_bytes) + " bytes a block", std::to_string(limit) + " bytes",
                   "compile it for the hardware model of this GPU"});
    }
    Check(driver.FuncSetAttribute(function, kFunctionMaxDynamicSharedBytes, static_cast<int>(launch.shared_bytes)),
          "cuFuncSetAttribute", launch.name);
  }
  if (launch.cooperative && !launch.groups) CheckResident(function, launch, launch.grid, device);
  return function;
}

}  // namespace

std::string ArchOf(int device) {
  return "sm_" + std::to_string(Attribute(device, kDeviceCapabilityMajor)) +
         std::to_string(Attribute(device, kDeviceCapabilityMinor));
}

bool Runs(const std::string& arch, const std::string& device_arch) {
  Arch code(arch), device(device_arch);
  if (code.major < 0 || code.major != device.major) return false;
  return code.suffix.empty() ? code.minor <= device.minor : code.minor == device.minor;
}

const LoadedKernel::OnDevice& LoadedKernel::Loaded(int device) {
  std::lock_guard<std::mutex> guard(lock_);
  auto it = devices_.find(device);
  if (it == devices_.end()) it = devices_.emplace(device, Load(device)).first;
  return it->second;
}

LoadedKernel::OnDevice LoadedKernel::Load(int ordinal) {
  const Driver& driver = Require();
  const Device device = DeviceAt(ordinal);
  OnDevice out;
  out.context = PrimaryContext(device);
  MakeCurrent(out.context);
  ffi::Bytes image = BinaryFor(ArchOf(device));
  Check(driver.ModuleLoadData(&out.module, image.data()), "cuModuleLoadData", spec_.entry);
  try {
    for (const LaunchSpec& launch : spec_.launches) out.functions.push_back(Prepared(out.module, launch, device));
  } catch (...) {
    driver.ModuleUnload(out.module);
    throw;
  }
  return out;
}

LoadedKernel::~LoadedKernel() {
  const Driver* driver = cuda::Load();
  Context before = nullptr;
  // results are not looked at: the driver may be gone with the process, or a context with its user
  if (!driver || devices_.empty() || driver->CtxGetCurrent(&before) != kSuccess) return;
  for (const auto& [device, loaded] : devices_) {
    if (driver->CtxSetCurrent(loaded.context) == kSuccess) driver->ModuleUnload(loaded.module);
  }
  driver->CtxSetCurrent(before);
}

void* LoadedKernel::Enter() { return CurrentContext(); }

void LoadedKernel::Leave(void* before) {
  const Driver& driver = Require();
  Context current = nullptr;
  if (driver.CtxGetCurrent(&current) == kSuccess && current != before)
    driver.CtxSetCurrent(static_cast<Context>(before));
}

ffi::Bytes LoadedKernel::BinaryFor(const std::string& device_arch) {
  if (auto found = binaries_.Find([&](const std::string& arch) { return Runs(arch, device_arch); })) return *found;
  if (!Runs(spec_.arch, device_arch)) {
    DeviceError({"A kernel was compiled for another kind of GPU.", spec_.entry, spec_.arch,
                 "this GPU is " + device_arch, "compile the model for this GPU (see `uir targets`)"});
  }
  return binaries_.Of(spec_.arch);
}

void LoadedKernel::Launch(int device, const CallArguments& call) {
  const Driver& driver = Require();
  const OnDevice& loaded = Loaded(device);
  MakeCurrent(loaded.context);
  Stream stream = TVMFFIEnvGetStream(kDLCUDA, device);
  std::vector<void*> arguments;
  for (size_t k = 0; k < spec_.launches.size(); ++k) {
    const LaunchSpec& launch = spec_.launches[k];
    if (call.blocks[k] == 0) continue;
    arguments.clear();
    for (int position : launch.arguments) arguments.push_back(const_cast<void**>(&call.pointers[position]));
    for (const int64_t& size : call.sizes) arguments.push_back(const_cast<int64_t*>(&size));
    unsigned grid = static_cast<unsigned>(call.blocks[k]), block = static_cast<unsigned>(launch.block);
    unsigned shared = static_cast<unsigned>(launch.shared_bytes);
    Function function = loaded.functions[k];
    if (launch.cooperative) {
      // of a number that sizes decide nothing was known when it was loaded
      if (launch.groups) CheckResident(function, launch, call.blocks[k], DeviceAt(device));
      Check(driver.LaunchCooperativeKernel(function, grid, 1, 1, block, 1, 1, shared, stream, arguments.data()),
            "cuLaunchCooperativeKernel", launch.name);
    } else {
      Check(driver.LaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, arguments.data(), nullptr),
            "cuLaunchKernel", launch.name);
    }
  }
}

}  // namespace uir::runtime::cuda

namespace uir::runtime {

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<cuda::LoadedKernel>("cuda", "gpu"); }

}  // namespace uir::runtime
