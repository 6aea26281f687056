// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/syncs.h"

#include <algorithm>

namespace uir::codegen::pipes {

Actions Arrange(const Program& program, const std::vector<Placed>& syncs) {
  Actions actions(program.bodies.size());
  for (size_t b = 0; b < actions.size(); ++b) actions[b].resize(program.bodies[b].items.size() + 1);
  for (int s = 0; s < static_cast<int>(syncs.size()); ++s) {
    const Placed& sync = syncs[s];
    if (sync.kind != Placed::Kind::kFlag) {
      actions[sync.body][sync.wait_gap].push_back({Action::Kind::kBarrier, s});
      continue;
    }
    actions[sync.body][sync.set_gap].push_back({Action::Kind::kSet, s});
    actions[sync.body][sync.wait_gap].push_back({Action::Kind::kWait, s});
    if (sync.distance == 0) continue;
    // What is left over is waited for where the pipe goes on, or at the end of the body around.
    const LoopOf& home = program.loops[sync.home];
    const std::vector<Item>& items = program.bodies[home.parent + 1].items;
    int next = home.position + 1;
    while (next < static_cast<int>(items.size()) && !program.Uses(items[next], sync.to)) ++next;
    actions[home.parent + 1][home.position].push_back({Action::Kind::kPrologue, s});
    actions[home.parent + 1][next].push_back({Action::Kind::kEpilogue, s});
  }
  for (auto& body : actions) {
    for (auto& gap : body) {
      auto rank = [](const Action& action) { return std::min(action.kind, Action::Kind::kWait); };
      std::stable_sort(gap.begin(), gap.end(), [&](const Action& a, const Action& b) { return rank(a) < rank(b); });
    }
  }
  return actions;
}

}  // namespace uir::codegen::pipes
