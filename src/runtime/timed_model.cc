// SPDX-License-Identifier: Apache-2.0
#include "runtime/timed_model.h"

#include <memory>

#include "runtime/model_result.h"
#include "runtime/modelled.h"

namespace uir::runtime {

namespace json = ffi::json;

void TimedModelExecutor::Launch(int, const std::vector<void*>& pointers) {
  bool timeline = false;
  bool wanted = modelled::Wanted(&timeline);
  const std::string& library = binaries_.FileOf(arch_);
  for (const LaunchSpec& launch : spec_.launches) {
    CheckInterrupted();
    std::vector<UirSimtArg> arguments = ModelArguments<UirSimtArg>(spec_, launch, pointers);
    char* text = nullptr;
    int status = Ask(launch, library.c_str(), arguments, spec_.device.c_str(), timeline, &text);
    std::unique_ptr<char, decltype(&uir_simt_free_text)> owned(text, uir_simt_free_text);
    json::Object result = ModelResult(status, launch, text ? text : "{}", binaries_.source());
    auto times = result.find(ffi::String("modelled"));
    if (wanted && times != result.end()) {
      modelled::Note(spec_.entry, launch.name, (*times).second.cast<json::Object>());
    }
  }
}

}  // namespace uir::runtime
