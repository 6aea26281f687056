// SPDX-License-Identifier: Apache-2.0
#include "device/engine/launch_state.h"

#include <dlfcn.h>

namespace uir::engine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostFindings = 16;
constexpr uint32_t kCallsBetweenLooks = 4096;

}  // namespace

void LaunchState::ResetLaunch(const char* name, int32_t max_findings, bool with_values) {
  kernel_name = name ? name : "";
  aborted = false;
  values = with_values;
  looked = false;
  memory_bytes = 0;
  findings.reset(new Findings(max_findings > 0 ? static_cast<size_t>(max_findings) : kMostFindings));
  counters.clear();
  moments.clear();
  until_check_ = 0;
}

std::string LaunchState::FindKernel(const char* library) {
  std::string error;
  module = LoadModule(library, &error);
  if (!module) return error;
  kernel = dlsym(module->handle, kernel_name.c_str());
  return kernel ? "" : "no kernel '" + kernel_name + "' in " + library;
}

void LaunchState::Take(const Arguments& arguments, double max_seconds, bool with_timeline) {
  args = arguments.values;
  parameters = arguments.Ranges();
  timeline = with_timeline;
  has_deadline_ = max_seconds > 0;
  if (has_deadline_) deadline_ = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(max_seconds * 1e6));
}

bool LaunchState::Late() {
  if (!has_deadline_ || until_check_-- > 0) return false;
  until_check_ = kCallsBetweenLooks;
  return Clock::now() >= deadline_;
}

std::string LaunchState::Answer(const std::string& error, Clock::time_point begin, const std::string& modelled) const {
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<std::string> list;
  for (const Finding& finding : findings->list()) {
    auto line = [](uint64_t site) { return site ? static_cast<int64_t>(site) : -1; };
    list.push_back(FindingJson(finding, kernel_name, {line(finding.site), -1, line(finding.other_site)}));
  }
  return ResultJson(error, kernel_name, seconds, {values, looked}, list, counters, modelled);
}

}  // namespace uir::engine
