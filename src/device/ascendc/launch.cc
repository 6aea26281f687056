// SPDX-License-Identifier: Apache-2.0
// Run one launch: load the library, bring arguments into the engine's memory, run, report.
#include <cstring>

#include "device/ascendc/ascendc.h"
#include "device/ascendc/machine.h"
#include "device/engine/kept_times.h"
#include "device/engine/launch_lock.h"
#include "device/engine/whole_launch.h"

namespace uir::ascendc {

namespace {

/*! \brief Everything up to the first core; what went wrong, or empty. */
std::string Prepare(const UirAscendcLaunch& launch, engine::Arguments* arguments) {
  std::string error = ReadDevice(launch.device, &machine.device);
  if (!error.empty()) return error;
  machine.core_kind = launch.core ? launch.core : "aiv";
  if (machine.core_kind == "mix") machine.core_kind = "mix_1_2";
  static const std::map<std::string, size_t> kinds = {{"aiv", 1}, {"aic", 1}, {"mix_1_1", 2}, {"mix_1_2", 3}};
  auto kind = kinds.find(machine.core_kind);
  if (kind == kinds.end()) {
    return "a launch on '" + machine.core_kind + "': the model has aiv, aic, mix_1_1 and mix_1_2";
  }
  machine.blocks = launch.blocks;
  size_t each = kind->second, cores = static_cast<size_t>(launch.blocks) * each;
  if (launch.blocks < 1 || cores >= engine::Epoch::kMaxCores) {
    return std::to_string(launch.blocks) + " blocks: the model runs 1 to " +
           std::to_string((engine::Epoch::kMaxCores - 1) / each);
  }
  error = machine.FindKernel(launch.library);
  if (!error.empty()) return error;
  if (!machine.stacks.Reserve(cores)) return "no memory for the stacks of the cores";
  for (int i = 0; i < launch.num_args; ++i) {
    const UirSimtArg& arg = launch.args[i];
    if (!arguments->Add({arg.value, arg.bytes, arg.name}, &error)) return error;
  }
  machine.Take(*arguments, launch.max_seconds, launch.timeline != 0);
  return "";
}

/*! \brief Leave nothing of the launch before. */
void Reset(const UirAscendcLaunch& launch, bool with_values) {
  machine.ResetLaunch(launch.kernel, launch.max_findings, with_values);
  machine.device = Device();
  machine.cores.clear();
  machine.core = nullptr;
  machine.gathering.clear();
  machine.global.clear();
  machine.touched_bytes = 0;
}

/*! \brief Run the launch; what went wrong, or empty. */
std::string RunLaunch(const UirAscendcLaunch& launch) {
  engine::Arguments arguments;
  std::string error = Prepare(launch, &arguments);
  if (error.empty()) RunCores();
  arguments.Return();
  return error;
}

/*! \brief By what the launch's times are kept; empty where they are not. */
std::string TimesKeyOf(const UirAscendcLaunch& launch) {
  if (launch.timeline) return "";
  auto text = [](const char* given) { return std::string(given ? given : ""); };
  const std::vector<std::string> facts = {text(launch.library), text(launch.kernel), text(launch.device),
                                          text(launch.core), std::to_string(launch.blocks)};
  return engine::TimesKey(facts, launch.args, launch.num_args);
}

}  // namespace
}  // namespace uir::ascendc

extern "C" int uir_ascendc_launch(const UirAscendcLaunch* launch, char** result) {
  using namespace uir::ascendc;
  std::lock_guard<std::mutex> lock(uir::engine::LaunchLock());
  std::string answer;
  int code = uir::engine::WholeLaunch(
      &machine,
      {launch->times_only != 0, [&] { return TimesKeyOf(*launch); },
       [&](bool with_values) { Reset(*launch, with_values); }, [&] { return RunLaunch(*launch); }, ModelledJson},
      &answer);
  if (result) *result = strdup(answer.c_str());
  return code;
}
