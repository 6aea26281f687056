// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/place.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <numeric>

#include "codegen/error.h"

namespace uir::codegen::pipes {

namespace {

/*! \brief Iterations beyond the necessary ones, so that longer chains fit; fewer in runs with more instances. */
constexpr int64_t kSlack = 4;
constexpr int64_t kMostInstances = 3000;

std::vector<int64_t> ExtentsFor(const Program& program) {
  int64_t slack = kSlack;
  while (slack > 0 && program.Instances(program.Shortened(slack)) > kMostInstances) --slack;
  return program.Shortened(slack);
}

/*! \brief One period more of each shortened loop. */
std::vector<int64_t> Longer(const Program& program, std::vector<int64_t> extents) {
  for (size_t l = 0; l < extents.size(); ++l) {
    if (extents[l] < program.loops[l].extent) extents[l] += program.loops[l].period;
  }
  return extents;
}

}  // namespace

Placer::Placer(const Program& program, const Vocabulary& vocabulary, const std::string& where)
    : program_(program),
      vocabulary_(vocabulary),
      where_(where),
      run_(program, ExtentsFor(program)),
      longer_(program, Longer(program, run_.extents)),
      conflicts_(program, run_.extents) {
  run_.FindNeeds(&conflicts_);
  const auto& loops = program.loops;
  if (std::none_of(loops.begin(), loops.end(), [](const LoopOf& loop) { return loop.optional; })) return;
  for (Run::Optional optional : {Run::Optional::kButLast, Run::Optional::kNone}) {
    without_.emplace_back(program, run_.extents, optional);
    without_.back().FindNeeds(&conflicts_);
  }
}

void Placer::CoverRaces() {
  while (Cover(run_)) {
  }
  for (const Run& run : without_) {
    while (Cover(run)) {
    }
  }
}

bool Placer::Cover(const Run& run) {
  std::vector<Race> races = Missing(run, vocabulary_, syncs_);
  if (races.empty()) return false;
  size_t before = syncs_.size();
  for (const Race& race : races) {
    Placed sync = For(run, race, races);
    bool there = std::any_of(syncs_.begin(), syncs_.end(), [&](const Placed& other) {
      return sync.kind == other.kind && sync.from == other.from && sync.to == other.to && sync.body == other.body &&
             sync.set_gap == other.set_gap && sync.wait_gap == other.wait_gap && sync.distance == other.distance;
    });
    if (!there) syncs_.push_back(sync);
  }
  if (syncs_.size() == before) TVM_FFI_THROW(InternalError) << where_ << ": a race that no sync orders";
  return true;
}

bool Placer::Ordered(const std::vector<Placed>& syncs, const Actions& actions, int without) const {
  auto ordered = [&](const Run& run) { return Check(run, vocabulary_, syncs, actions, without, true).races.empty(); };
  return ordered(run_) && std::all_of(without_.begin(), without_.end(), ordered);
}

std::set<std::pair<int, int>> Placer::TogetherIn(const std::vector<int>& flags) const {
  std::set<std::pair<int, int>> together = Together(run_, vocabulary_, syncs_, flags);
  for (const Run& run : without_) together.merge(Together(run, vocabulary_, syncs_, flags));
  return together;
}

Placed Placer::Draining(int from, int body, int gap) const {
  Placed sync;
  sync.from = sync.to = from;
  sync.body = body;
  sync.set_gap = sync.wait_gap = gap;
  const std::string& pipe = program_.pipes[from];
  if (vocabulary_.drains.count(pipe)) {
    sync.kind = Placed::Kind::kDrain;
  } else if (vocabulary_.drain_all) {
    sync.kind = Placed::Kind::kDrainAll;
  } else {
    CodegenError("nothing on this device waits for pipe " + pipe, where_);
  }
  return sync;
}

Placed Placer::For(const Run& run, const Race& race, const std::vector<Race>& races) const {
  const Op& first = program_.ops[run.instances[race.first].op];
  const Op& second = program_.ops[run.instances[race.second].op];
  auto carrier = [&](const Race& one) {
    const std::vector<int64_t>& a = run.instances[one.first].iterations;
    const std::vector<int64_t>& b = run.instances[one.second].iterations;
    size_t l = 0;
    while (l < a.size() && l < b.size() && first.loops[l] == second.loops[l] && a[l] == b[l]) ++l;
    return l;
  };
  size_t l = carrier(race);
  bool carried = l < first.loops.size() && l < second.loops.size() && first.loops[l] == second.loops[l];
  Placed sync;
  sync.from = first.pipe;
  sync.to = second.pipe;
  sync.body = carried ? first.loops[l] + 1 : l == 0 ? 0 : first.loops[l - 1] + 1;
  sync.set_gap = program_.PositionIn(sync.body, first) + 1;
  sync.wait_gap = program_.PositionIn(sync.body, second);
  if (sync.from == sync.to && vocabulary_.barriers.count(program_.pipes[sync.from])) {
    sync.kind = Placed::Kind::kBarrier;
    return sync;
  }
  if (!vocabulary_.flags.count({program_.pipes[sync.from], program_.pipes[sync.to]})) {
    // What is issued between the two keeps running while the core waits, but more work of the pipe would be waited
    // for as well: between iterations, the place before it.
    int gap = 0;
    const std::vector<Item>& items = program_.bodies[sync.body].items;
    while (gap < sync.wait_gap && !(carried && program_.Uses(items[gap], sync.from))) ++gap;
    return Draining(sync.from, sync.body, gap);
  }
  if (!carried) return sync;
  sync.home = first.loops[l];
  // The same two may race at several distances; the least one serves all.
  for (const Race& other : races) {
    const Instance& a = run.instances[other.first];
    const Instance& b = run.instances[other.second];
    if (a.op != run.instances[race.first].op || b.op != run.instances[race.second].op || carrier(other) != l) continue;
    int64_t distance = b.iterations[l] - a.iterations[l];
    if (sync.distance == 0 || distance < sync.distance) sync.distance = distance;
  }
  // As many are up at once as the distance says, and one more where the wait is behind the set.
  int64_t most = vocabulary_.ids - (sync.set_gap <= sync.wait_gap ? 1 : 0);
  sync.distance = std::max<int64_t>(std::min(sync.distance, most), 1);
  return sync;
}

std::vector<int64_t> Placer::IdsNeeded(const std::vector<Placed>& syncs, int without) const {
  Actions actions = Arrange(program_, syncs);
  std::vector<int64_t> ids = Check(run_, vocabulary_, syncs, actions, without, false).ids;
  std::vector<int64_t> more = Check(longer_, vocabulary_, syncs, actions, without, false).ids;
  for (size_t s = 0; s < ids.size(); ++s) {
    if (ids[s] != more[s]) ids[s] = 0;
  }
  for (const Run& run : without_) {
    std::vector<int64_t> own = Check(run, vocabulary_, syncs, actions, without, false).ids;
    for (size_t s = 0; s < ids.size(); ++s) {
      if (ids[s] > 0) ids[s] = std::max(ids[s], own[s]);
    }
  }
  return ids;
}

bool Placer::Valid(const std::vector<Placed>& syncs, const Actions& actions, int without, bool ids) const {
  if (!Ordered(syncs, actions, without)) return false;
  if (!ids) return true;
  std::vector<int64_t> needed = IdsNeeded(syncs, without);
  for (size_t s = 0; s < syncs.size(); ++s) {
    bool flag = static_cast<int>(s) != without && syncs[s].kind == Placed::Kind::kFlag;
    if (flag && (needed[s] == 0 || needed[s] > vocabulary_.ids)) return false;
  }
  return true;
}

void Placer::Prune(bool ids) {
  std::vector<int> depth(syncs_.size()), order(syncs_.size());
  for (size_t s = 0; s < syncs_.size(); ++s) depth[s] = static_cast<int>(program_.Around(syncs_[s].body).size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return depth[a] > depth[b]; });
  std::vector<int> gone;
  Actions actions = Arrange(program_, syncs_);
  for (int s : order) {
    int at = s - static_cast<int>(std::count_if(gone.begin(), gone.end(), [s](int other) { return other < s; }));
    if (syncs_[at].for_sharing || !Valid(syncs_, actions, at, ids)) continue;
    syncs_.erase(syncs_.begin() + at);
    actions = Arrange(program_, syncs_);
    gone.push_back(s);
  }
}

void Placer::Hoist(bool ids) {
  for (size_t s = 0; s < syncs_.size(); ++s) {
    if (syncs_[s].distance == 0) continue;
    int own = syncs_[s].home;
    std::vector<int> around = program_.Around(own + 1);
    for (int home : around) {
      if (home == own) break;
      syncs_[s].home = home;
      if (Valid(syncs_, Arrange(program_, syncs_), -1, ids)) break;
      syncs_[s].home = own;
    }
  }
}

Placed Placer::Limiting(const Placed& flag, int64_t distance) const {
  // Behind what waits for the flag, and before what it is set behind.
  int gap = std::max(flag.set_gap - 1, 0);
  if (!vocabulary_.flags.count({program_.pipes[flag.to], program_.pipes[flag.from]})) {
    return Draining(flag.to, flag.body, gap);
  }
  Placed back;
  back.from = flag.to;
  back.to = flag.from;
  back.body = flag.body;
  back.set_gap = std::min(flag.wait_gap + 1, static_cast<int>(program_.bodies[flag.body].items.size()));
  back.wait_gap = gap;
  back.distance = distance;
  back.home = flag.body - 1;
  return back;
}

void Placer::LimitSets() {
  // Each round bounds one flag by one that is itself bounded by it, or makes its distance shorter.
  size_t rounds = 2 * syncs_.size() + 1;
  for (const Placed& sync : syncs_) rounds += static_cast<size_t>(sync.distance);
  while (true) {
    std::vector<int64_t> needed = IdsNeeded(syncs_, -1);
    int open = -1;
    for (size_t s = 0; s < syncs_.size() && open < 0; ++s) {
      bool flag = syncs_[s].kind == Placed::Kind::kFlag;
      if (flag && (needed[s] == 0 || needed[s] > vocabulary_.ids)) open = static_cast<int>(s);
    }
    if (open < 0) return;
    if (syncs_[open].body == 0 || rounds-- == 0) {
      CodegenError("no number of flags lets " + program_.pipes[syncs_[open].from] + " get ahead of " +
                       program_.pipes[syncs_[open].to],
                   where_);
    }
    syncs_.push_back(Limiting(syncs_[open], 2));
    // Where a loop around sets and waits for all of them again, a flag in the loop itself bounds nothing.
    if (needed[open] > 0 && syncs_[open].distance > 1 && IdsNeeded(syncs_, -1)[open] >= needed[open]) {
      syncs_.pop_back();
      --syncs_[open].distance;
    }
  }
}

}  // namespace uir::codegen::pipes
