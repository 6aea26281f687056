// SPDX-License-Identifier: Apache-2.0
#include "runtime/timed_model.h"

#include <memory>

#include "runtime/model_result.h"
#include "runtime/modelled.h"

namespace uir::runtime {

namespace json = ffi::json;

void TimedModelExecutor::Launch(int, const CallArguments& call) {
  bool timeline = false;
  bool wanted = modelled::Wanted(&timeline);
  const std::string& library = binaries_.FileOf(arch_);
  for (size_t k = 0; k < spec_.launches.size(); ++k) {
    const LaunchSpec& launch = spec_.launches[k];
    if (call.blocks[k] == 0) continue;
    CheckInterrupted();
    std::vector<UirSimtArg> arguments = ModelArguments<UirSimtArg>(spec_, launch, call);
    char* text = nullptr;
    int status = Ask(launch, call.blocks[k], library.c_str(), arguments, spec_.device.c_str(), timeline, &text);
    std::unique_ptr<char, decltype(&uir_simt_free_text)> owned(text, uir_simt_free_text);
    json::Object result = ModelResult(status, launch, text ? text : "{}", binaries_.source());
    auto times = result.find(ffi::String("modelled"));
    if (wanted && times != result.end()) {
      modelled::Note(spec_.entry, launch.name, (*times).second.cast<json::Object>());
    }
  }
}

}  // namespace uir::runtime
