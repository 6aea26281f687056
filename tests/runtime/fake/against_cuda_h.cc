// SPDX-License-Identifier: Apache-2.0
// Compiles where src/runtime/cuda_driver.h says what cuda.h says.
#include <cuda.h>

#include <type_traits>

#include "runtime/cuda_driver.h"

namespace cuda = uir::runtime::cuda;

// Handles are pointers on both sides, enumerations integers of their size.
template <typename A, typename B>
constexpr bool kAlike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Same<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && kAlike<R, S> && (kAlike<A, B> && ...)> {};

#define CHECK_SIGNATURE(NAME) static_assert(Same<decltype(cuda::Driver::NAME), decltype(&cu##NAME)>::value, "cu" #NAME)

CHECK_SIGNATURE(Init);
CHECK_SIGNATURE(DriverGetVersion);
CHECK_SIGNATURE(DeviceGetCount);
CHECK_SIGNATURE(DeviceGet);
CHECK_SIGNATURE(DeviceGetName);
CHECK_SIGNATURE(DeviceGetAttribute);
CHECK_SIGNATURE(DevicePrimaryCtxRetain);
CHECK_SIGNATURE(CtxGetCurrent);
CHECK_SIGNATURE(CtxSetCurrent);
CHECK_SIGNATURE(ModuleLoadData);
CHECK_SIGNATURE(ModuleUnload);
CHECK_SIGNATURE(ModuleGetFunction);
CHECK_SIGNATURE(FuncGetAttribute);
CHECK_SIGNATURE(FuncSetAttribute);
CHECK_SIGNATURE(OccupancyMaxActiveBlocksPerMultiprocessor);
CHECK_SIGNATURE(LaunchKernel);
CHECK_SIGNATURE(LaunchCooperativeKernel);
CHECK_SIGNATURE(GetErrorName);
CHECK_SIGNATURE(GetErrorString);

static_assert(cuda::kSuccess == CUDA_SUCCESS);
static_assert(cuda::kDeviceMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cuda::kDeviceCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kDeviceCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kDeviceCooperativeLaunch == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
static_assert(cuda::kDeviceMaxSharedBytesOptin == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(cuda::kFunctionLocalBytes == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(cuda::kFunctionRegisters == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(cuda::kFunctionMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
