// SPDX-License-Identifier: Apache-2.0
// Ids of flags: each its own while they last, then shared by flags that are never up together.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "codegen/error.h"
#include "codegen/pipes/place.h"

namespace uir::codegen::pipes {

void Placer::AllocateIds() {
  // Each round leaves fewer flags, or lets two share an id; drains, which need none, come last.
  size_t rounds = 4 * syncs_.size() + 4;
  bool relieved = false;
  std::vector<int> full = GiveIds();
  for (; !full.empty(); full = GiveIds()) {
    if (rounds-- == 0) {
      CodegenError("the flags of this device do not suffice", where_, "",
                   std::to_string(vocabulary_.ids) + " of a pair");
    }
    Relieve(full);
    LimitSets();
    relieved = true;
  }
  // What came late may make needless what was there before.
  for (size_t s = relieved ? syncs_.size() : 0; s-- > 0;) {
    if (!Valid(syncs_, Arrange(program_, syncs_), static_cast<int>(s), true)) continue;
    std::vector<Placed> before = syncs_;
    syncs_.erase(syncs_.begin() + static_cast<std::ptrdiff_t>(s));
    if (!GiveIds().empty()) syncs_ = std::move(before);
  }
}

std::vector<int> Placer::GiveIds() {
  std::vector<int64_t> needed = IdsNeeded(syncs_, -1);
  std::map<std::pair<int, int>, std::vector<int>> pairs;
  for (int s = 0; s < static_cast<int>(syncs_.size()); ++s) {
    if (syncs_[s].kind != Placed::Kind::kFlag) continue;
    syncs_[s].ids = needed[s];
    pairs[{syncs_[s].from, syncs_[s].to}].push_back(s);
  }
  for (auto& [pair, flags] : pairs) {
    std::stable_sort(flags.begin(), flags.end(), [this](int a, int b) {
      return std::pair(syncs_[a].body, syncs_[a].set_gap) < std::pair(syncs_[b].body, syncs_[b].set_gap);
    });
    if (!Share(flags)) return flags;
  }
  return {};
}

bool Placer::Share(const std::vector<int>& flags) {
  int64_t next = 0;
  for (int s : flags) next += syncs_[s].ids;
  bool enough = next <= vocabulary_.ids;
  next = 0;
  std::set<std::pair<int, int>> together;
  if (!enough) together = TogetherIn(flags);
  std::vector<int> placed;
  for (int s : flags) {
    Placed& flag = syncs_[s];
    bool fits = enough;
    if (enough) flag.first_id = next;
    next += flag.ids;
    for (int64_t first = 0; !fits && first + flag.ids <= vocabulary_.ids; ++first) {
      flag.first_id = first;
      fits = std::all_of(placed.begin(), placed.end(), [&](int other) {
        const Placed& there = syncs_[other];
        bool overlap = first < there.first_id + there.ids && there.first_id < first + flag.ids;
        return !overlap || together.count(std::minmax(s, other)) == 0;
      });
    }
    if (!fits) return false;
    placed.push_back(s);
  }
  return true;
}

void Placer::Relieve(const std::vector<int>& flags) {
  if (Join(flags) || Follow(flags)) return;
  // A flag of a shorter distance needs fewer ids: the waiter is held up earlier.
  auto longest = std::max_element(flags.begin(), flags.end(),
                                  [this](int a, int b) { return syncs_[a].distance < syncs_[b].distance; });
  if (syncs_[*longest].distance > 1) {
    --syncs_[*longest].distance;
    return;
  }
  const Placed& last = syncs_[flags.back()];
  Placed drain = Draining(last.from, last.body, last.wait_gap);
  syncs_[flags.back()] = drain;
}

bool Placer::Join(const std::vector<int>& flags) {
  int first = -1, second = -1, least = 0;
  for (size_t i = 0; i < flags.size(); ++i) {
    for (size_t j = i + 1; j < flags.size(); ++j) {
      const Placed& a = syncs_[flags[i]];
      const Placed& b = syncs_[flags[j]];
      if (a.body != b.body || a.home != b.home) continue;
      int set = std::max(a.set_gap, b.set_gap), wait = std::min(a.wait_gap, b.wait_gap);
      if (a.distance == 0 && set > wait) continue;
      // How far sets come later and waits earlier than they need to.
      int cost = set - std::min(a.set_gap, b.set_gap) + std::max(a.wait_gap, b.wait_gap) - wait;
      int items = static_cast<int>(program_.bodies[a.body].items.size());
      cost += static_cast<int>(std::llabs(a.distance - b.distance)) * items;
      if (first >= 0 && cost >= least) continue;
      first = flags[i];
      second = flags[j];
      least = cost;
    }
  }
  if (first < 0) return false;
  Placed& kept = syncs_[first];
  kept.set_gap = std::max(kept.set_gap, syncs_[second].set_gap);
  kept.wait_gap = std::min(kept.wait_gap, syncs_[second].wait_gap);
  kept.distance = std::min(kept.distance, syncs_[second].distance);
  syncs_.erase(syncs_.begin() + second);
  return true;
}

bool Placer::Follow(const std::vector<int>& flags) {
  std::set<std::pair<int, int>> together = TogetherIn(flags);
  for (size_t i = 0; i < flags.size(); ++i) {
    for (size_t j = flags.size(); j-- > i + static_cast<size_t>(vocabulary_.ids);) {
      const Placed a = syncs_[flags[i]], b = syncs_[flags[j]];
      if (!vocabulary_.flags.count({program_.pipes[a.to], program_.pipes[a.from]})) return false;
      if (a.body != b.body || together.count(std::minmax(flags[i], flags[j])) == 0) continue;
      Placed back;
      back.from = a.to;
      back.to = a.from;
      back.body = a.body;
      back.set_gap = a.wait_gap + 1;
      back.wait_gap = b.set_gap - 1;
      back.for_sharing = true;
      if (back.set_gap > back.wait_gap) continue;
      std::vector<Placed> before = syncs_;
      syncs_.push_back(back);
      if (back.body > 0) {
        // and the first one of the next iteration follows the second one
        back.distance = 1;
        back.home = back.body - 1;
        back.set_gap = b.wait_gap + 1;
        back.wait_gap = a.set_gap - 1;
        syncs_.push_back(back);
      }
      if (TogetherIn({flags[i], flags[j]}).empty()) return true;
      syncs_ = std::move(before);
    }
  }
  return false;
}

}  // namespace uir::codegen::pipes
