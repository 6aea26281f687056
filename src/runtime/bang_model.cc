// SPDX-License-Identifier: Apache-2.0
// Kernels of BANG C on their host model (src/device/bang), and what they would take on the device.
#include <tvm/ffi/reflection/registry.h>

#include <memory>

#include "device/bang/bang.h"
#include "runtime/timed_model.h"

namespace uir::runtime {

namespace {

/*! \brief The architecture of code for this model. */
constexpr const char* kBangArch = "bang-model";

class BangModelExecutor final : public TimedModelExecutor {
 public:
  BangModelExecutor(const KernelSpec& spec, Binaries& binaries) : TimedModelExecutor(spec, binaries, kBangArch) {}

 protected:
  int Ask(const LaunchSpec& launch, int64_t blocks, const char* library, const std::vector<UirSimtArg>& arguments,
          const char* device, const Asked& asked, char** text) final {
    UirBangLaunch request{};
    request.library = library;
    request.kernel = launch.name.c_str();
    request.args = arguments.data();
    request.num_args = static_cast<int32_t>(arguments.size());
    request.groups = static_cast<int32_t>(blocks);
    request.units = static_cast<int32_t>(launch.block);
    request.device = device;
    request.timeline = asked.timeline;
    request.times_only = asked.times_only;
    return uir_bang_launch(&request, text);
  }
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<BangModelExecutor>("bang", "model"); }

}  // namespace uir::runtime
