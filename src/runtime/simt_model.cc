// SPDX-License-Identifier: Apache-2.0
// Kernels of CUDA on their host model (src/device/simt).
#include <tvm/ffi/reflection/registry.h>

#include <memory>

#include "device/simt/simt.h"
#include "runtime/executor.h"
#include "runtime/model_result.h"

namespace uir::runtime {

namespace {

/*! \brief The architecture of code for this model. */
constexpr const char* kSimtArch = "simt";

class SimtExecutor final : public Executor {
 public:
  SimtExecutor(const KernelSpec& spec, Binaries& binaries) : spec_(spec), binaries_(binaries) {}
  ~SimtExecutor() final { binaries_.Unload(kSimtArch, &uir_simt_unload); }

  void Launch(int, const CallArguments& call) final {
    for (size_t k = 0; k < spec_.launches.size(); ++k) {
      if (call.blocks[k] == 0) continue;
      CheckInterrupted();
      Run(spec_.launches[k], call.blocks[k], call);
    }
  }

 private:
  void Run(const LaunchSpec& launch, int64_t blocks, const CallArguments& call) {
    std::vector<UirSimtArg> arguments = ModelArguments<UirSimtArg>(spec_, launch, call);
    const std::string& library = binaries_.FileOf(kSimtArch);
    UirSimtLaunch request{};
    request.library = library.c_str();
    request.kernel = launch.name.c_str();
    request.args = arguments.data();
    request.num_args = static_cast<int32_t>(arguments.size());
    request.grid = static_cast<int32_t>(blocks);
    request.block = static_cast<int32_t>(launch.block);
    request.shared_bytes = launch.shared_bytes;
    request.cooperative = launch.cooperative;
    char* text = nullptr;
    int status = uir_simt_launch(&request, &text);
    std::unique_ptr<char, decltype(&uir_simt_free_text)> owned(text, uir_simt_free_text);
    // what was counted is in the answer only where nothing is wrong; nobody asks for it here
    if (status != 0) ModelResult(status, launch, text ? text : "{}", binaries_.source());
  }

  const KernelSpec& spec_;
  Binaries& binaries_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { RegisterExecutor<SimtExecutor>("cuda", "model"); }

}  // namespace uir::runtime
