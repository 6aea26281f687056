// SPDX-License-Identifier: Apache-2.0
// Kernels of Ascend C on their host model (src/device/ascendc), and what they would take on the device.
#include <tvm/ffi/reflection/registry.h>

#include <memory>

#include "device/ascendc/ascendc.h"
#include "runtime/timed_model.h"

namespace uir::runtime {

namespace {

/*! \brief The architecture of code for this model. */
constexpr const char* kAscendArch = "ascendc";

class AscendModelExecutor final : public TimedModelExecutor {
 public:
  AscendModelExecutor(const KernelSpec& spec, Binaries& binaries) : TimedModelExecutor(spec, binaries, kAscendArch) {}

 protected:
  int Ask(const LaunchSpec& launch, int64_t blocks, const char* library, const std::vector<UirSimtArg>& arguments,
          const char* device, const Asked& asked, char** text) final {
    UirAscendcLaunch request{};
    request.library = library;
    request.kernel = launch.name.c_str();
    request.args = arguments.data();
    request.num_args = static_cast<int32_t>(arguments.size());
    request.blocks = static_cast<int32_t>(blocks);
    request.core = launch.core.c_str();
    request.device = device;
    request.timeline = asked.timeline;
    request.times_only = asked.times_only;
    return uir_ascendc_launch(&request, text);
  }
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<AscendModelExecutor>("ascend", "model"); }

}  // namespace uir::runtime
