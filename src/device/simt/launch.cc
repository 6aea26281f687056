// SPDX-License-Identifier: Apache-2.0
// Run one launch: load the library, bring arguments into the engine's memory, run, report.
#include <dlfcn.h>

#include <cstring>

#include "device/engine/launch_lock.h"
#include "device/engine/result.h"
#include "device/simt/machine.h"
#include "device/simt/simt.h"

namespace uir::simt {

using engine::Finding;
using engine::Line;
using engine::LineOf;

namespace {

std::string CheckShape(const UirSimtLaunch& launch) {
  if (launch.grid < 1 || static_cast<uint32_t>(launch.grid) >= engine::RaceShadow::kMaxBlocks) {
    return "a grid of " + std::to_string(launch.grid) + " blocks: the model runs 1 to " +
           std::to_string(engine::RaceShadow::kMaxBlocks - 1);
  }
  if (launch.block < 1 || static_cast<uint32_t>(launch.block) > kMaxThreads) {
    return "a block of " + std::to_string(launch.block) + " threads: devices run 1 to 1024";
  }
  if (launch.shared_bytes < 0 || static_cast<size_t>(launch.shared_bytes) > kPoolBytes) {
    return std::to_string(launch.shared_bytes) + " bytes of shared memory: the model has " + std::to_string(kPoolBytes);
  }
  return "";
}

std::string FindingJson(const Finding& finding) {
  Line line = finding.site ? LineOf(finding.site) : Line();
  Line caller = finding.caller ? LineOf(finding.caller) : line;
  Line other = finding.other_site ? LineOf(finding.other_site) : Line();
  return engine::FindingJson(finding, machine.kernel_name, {caller.kernel, line.inner, other.kernel});
}

std::string ResultJson(const std::string& error, double seconds) {
  std::vector<std::string> findings;
  for (const Finding& finding : machine.findings->list()) findings.push_back(FindingJson(finding));
  std::map<std::string, int64_t> counters;
  for (size_t i = 0; i < kCounterCount; ++i) counters[CounterName(i)] = static_cast<int64_t>(machine.counters.of[i]);
  return engine::ResultJson(error, machine.kernel_name, seconds, {}, findings, counters, "");
}

/*! \brief Everything up to the first lane; what went wrong, or empty. */
std::string Prepare(const UirSimtLaunch& launch, engine::Arguments* arguments) {
  machine.kernel_name = launch.kernel ? launch.kernel : "";
  std::string error = CheckShape(launch);
  if (!error.empty()) return error;
  const engine::Module* module = engine::LoadModule(launch.library, &error);
  if (!module) return error;
  machine.kernel = dlsym(module->handle, launch.kernel);
  if (!machine.kernel) return "no kernel '" + machine.kernel_name + "' in " + launch.library;
  machine.module_begin = module->begin;
  machine.module_end = module->end;
  machine.trace.Reset(module->end - module->begin);
  engine::SetLineSource(launch.library, module->begin, ".cu");
  machine.grid = static_cast<uint32_t>(launch.grid);
  machine.threads = static_cast<uint32_t>(launch.block);
  machine.shared_bytes = static_cast<size_t>(launch.shared_bytes);
  machine.cooperative = launch.cooperative != 0;
  machine.shared_shift = engine::RaceShadow::kWidestShift;
  machine.has_deadline = launch.max_seconds > 0;
  if (machine.has_deadline) {
    machine.deadline =
        std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<int64_t>(launch.max_seconds * 1e6));
  }
  if (!machine.stacks.Reserve(machine.cooperative ? size_t{machine.grid} * machine.threads : kMaxThreads)) {
    return "no memory for the stacks of the threads";
  }
  for (int i = 0; i < launch.num_args; ++i) {
    const UirSimtArg& arg = launch.args[i];
    if (!arguments->Add({arg.value, arg.bytes, arg.name}, &error)) return error;
  }
  machine.args = arguments->values;
  machine.parameters = arguments->Ranges();
  return "";
}

}  // namespace
}  // namespace uir::simt

extern "C" int uir_simt_launch(const UirSimtLaunch* launch, char** result) {
  using namespace uir::simt;
  std::lock_guard<std::mutex> lock(uir::engine::LaunchLock());
  machine.findings.reset(
      new uir::engine::Findings(launch->max_findings > 0 ? static_cast<size_t>(launch->max_findings) : 16));
  machine.counters = Counters();
  machine.aborted = false;
  machine.pending_write = nullptr;
  auto begin = std::chrono::steady_clock::now();
  uir::engine::Arguments arguments;
  std::string error = Prepare(*launch, &arguments);
  if (error.empty()) RunGrid();
  arguments.Return();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::string json = ResultJson(error, seconds);
  bool found = !machine.findings->empty();
  if (result) *result = strdup(json.c_str());
  return !error.empty() ? 2 : found ? 1 : 0;
}
