// SPDX-License-Identifier: Apache-2.0
/*!
 * \file ascend_model.cc
 * \brief Kernels of Ascend C on their host model (src/device/ascendc), and what they would take on the device.
 */
#include <memory>

#include "device/ascendc/ascendc.h"
#include "runtime/executor.h"
#include "runtime/model_result.h"
#include "runtime/modelled.h"

namespace uir::runtime {

namespace json = ffi::json;

namespace {

/*! \brief The architecture of code for this model. */
constexpr const char* kArch = "ascendc";

class AscendModelExecutor final : public Executor {
 public:
  AscendModelExecutor(const KernelSpec& spec, Binaries& binaries) : spec_(spec), binaries_(binaries) {}

  void Launch(int, const std::vector<void*>& pointers) final {
    bool timeline = false;
    bool wanted = modelled::Wanted(&timeline);
    for (const LaunchSpec& launch : spec_.launches) {
      json::Object result = Run(launch, pointers, timeline);
      auto times = result.find(ffi::String("modelled"));
      if (wanted && times != result.end()) {
        modelled::Note(spec_.entry, launch.name, (*times).second.cast<json::Object>());
      }
    }
  }

 private:
  json::Object Run(const LaunchSpec& launch, const std::vector<void*>& pointers, bool timeline) {
    std::vector<UirSimtArg> arguments = ModelArguments<UirSimtArg>(spec_, launch, pointers);
    const std::string& library = binaries_.FileOf(kArch);
    UirAscendcLaunch request{};
    request.library = library.c_str();
    request.kernel = launch.name.c_str();
    request.args = arguments.data();
    request.num_args = static_cast<int32_t>(arguments.size());
    request.blocks = static_cast<int32_t>(launch.grid);
    request.core = launch.core.c_str();
    request.device = spec_.device.c_str();
    request.timeline = timeline;
    char* text = nullptr;
    int status = uir_ascendc_launch(&request, &text);
    std::unique_ptr<char, decltype(&uir_simt_free_text)> owned(text, uir_simt_free_text);
    return ModelResult(status, launch, text ? text : "{}", binaries_.source());
  }

  const KernelSpec& spec_;
  Binaries& binaries_;
};

}  // namespace

std::unique_ptr<Executor> MakeAscendModelExecutor(const KernelSpec& spec, Binaries& binaries) {
  return std::make_unique<AscendModelExecutor>(spec, binaries);
}

}  // namespace uir::runtime
