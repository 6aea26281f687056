// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/steps.h"

#include <algorithm>

namespace uir::codegen::tiles {

bool IsConstant(const std::vector<Step>& steps, const Step& step) {
  if (step.form == Step::Form::kFill || step.form == Step::Form::kIndex) return true;
  return !step.args.empty() &&
         std::all_of(step.args.begin(), step.args.end(), [&](int arg) { return IsConstant(steps, steps[arg]); });
}

std::vector<bool> NeededFor(const std::vector<Step>& steps, int result) {
  std::vector<bool> needed(steps.size(), false);
  needed[result] = true;
  for (size_t k = steps.size(); k-- > 0;) {
    if (!needed[k]) continue;
    for (int arg : steps[k].args) needed[arg] = true;
  }
  return needed;
}

std::vector<int> LastReads(const std::vector<Step>& steps, const std::vector<bool>& needed) {
  std::vector<int> last(steps.size(), -1);
  for (size_t k = 0; k < steps.size(); ++k) {
    if (!needed[k] || !Computes(steps[k])) continue;
    for (int arg : steps[k].args) last[RootOf(steps, arg)] = static_cast<int>(k);
  }
  return last;
}

}  // namespace uir::codegen::tiles
