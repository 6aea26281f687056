// SPDX-License-Identifier: Apache-2.0
#include "device/engine/whole_launch.h"

#include <chrono>

#include "device/engine/kept_times.h"

namespace uir::engine {

int WholeLaunch(LaunchState* state, const LaunchSteps& steps, std::string* answer) {
  auto begin = std::chrono::steady_clock::now();
  const std::string key = steps.times_only ? steps.times_key() : "";
  const KeptTimes* kept = key.empty() ? nullptr : FindTimes(key);
  std::string error, modelled;
  steps.reset(!steps.times_only);
  if (kept) {
    state->counters = kept->counters;
    modelled = kept->modelled;
  } else {
    error = steps.run();
    if (state->looked && !state->values) {
      steps.reset(true);
      error = steps.run();
    }
    modelled = steps.modelled();
  }
  *answer = state->Answer(error, begin, modelled);
  const bool found = !state->findings->empty();
  if (!key.empty() && !kept && !state->values && error.empty() && !found) {
    KeepTimes(key, {modelled, state->counters});
  }
  return !error.empty() ? 2 : found ? 1 : 0;
}

}  // namespace uir::engine
