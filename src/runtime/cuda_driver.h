// SPDX-License-Identifier: Apache-2.0
// The part of NVIDIA's driver API that launches kernels, loaded when it is first asked for.
//
// Declared here rather than included, so that the library builds and loads where there is no CUDA.  Signatures and
// values are those of cuda.h of CUDA 13 (CUDA Driver API, "Data types used by CUDA driver", "Execution Control",
// "Module Management"); they have not changed since CUDA 9.
#pragma once

#include <cstddef>
#include <string>

namespace uir::runtime::cuda {

using Result = int;
using Device = int;
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = void*;

constexpr Result kSuccess = 0;
constexpr int kDeviceMultiprocessorCount = 16;
constexpr int kDeviceCapabilityMajor = 75;
constexpr int kDeviceCapabilityMinor = 76;
constexpr int kDeviceCooperativeLaunch = 95;
constexpr int kDeviceMaxSharedBytesOptin = 97;
constexpr int kFunctionLocalBytes = 3;
constexpr int kFunctionRegisters = 4;
constexpr int kFunctionMaxDynamicSharedBytes = 8;

/*! \brief Shared memory that a kernel may use without asking for it (CUDA C++ Programming Guide, compute 7.x to 9.x).
 */
constexpr int kSharedBytesWithoutOptin = 48 * 1024;

/*! \brief The functions, by their names in libcuda without `cu`. */
struct Driver {
  Result (*Init)(unsigned int flags) = nullptr;
  Result (*DriverGetVersion)(int* version) = nullptr;
  Result (*DeviceGetCount)(int* count) = nullptr;
  Result (*DeviceGet)(Device* device, int ordinal) = nullptr;
  Result (*DeviceGetName)(char* name, int size, Device device) = nullptr;
  Result (*DeviceGetAttribute)(int* value, int attribute, Device device) = nullptr;
  Result (*DevicePrimaryCtxRetain)(Context* context, Device device) = nullptr;
  Result (*CtxGetCurrent)(Context* context) = nullptr;
  Result (*CtxSetCurrent)(Context context) = nullptr;
  Result (*ModuleLoadData)(Module* module, const void* image) = nullptr;
  Result (*ModuleUnload)(Module module) = nullptr;
  Result (*ModuleGetFunction)(Function* function, Module module, const char* name) = nullptr;
  Result (*FuncGetAttribute)(int* value, int attribute, Function function) = nullptr;
  Result (*FuncSetAttribute)(Function function, int attribute, int value) = nullptr;
  Result (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, Function function, int block_size,
                                                      size_t shared_bytes) = nullptr;
  Result (*LaunchKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** params,
                         void** extra) = nullptr;
  Result (*LaunchCooperativeKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                    Stream stream, void** params) = nullptr;
  Result (*GetErrorName)(Result error, const char** name) = nullptr;
  Result (*GetErrorString)(Result error, const char** text) = nullptr;
};

/*! \brief The driver, loaded and initialised; nullptr where it cannot be, and `why` (if given) says so. */
const Driver* Load(std::string* why = nullptr);

/*! \brief The driver.
 *  \throws DeviceError There is none. */
const Driver& Require();

/*! \brief "CUDA_ERROR_INVALID_VALUE: invalid argument". */
std::string ErrorText(Result result);

/*! \brief Throws a DeviceError that names the call unless the result is a success. */
void Check(Result result, const char* call, const std::string& where = "");

/*! \brief An attribute of a device. */
int Attribute(Device device, int attribute);

}  // namespace uir::runtime::cuda
