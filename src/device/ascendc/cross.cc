// SPDX-License-Identifier: Apache-2.0
// Order between cores: SyncAll, and flags that cores of a block or of the launch set for each other.
#include <string>
#include <vector>

#include "device/ascendc/machine.h"

namespace uir::ascendc {

namespace {

using engine::Pipes;

/*! \brief Ids from here on are SyncAll's: of the vector cores, of all cores. */
constexpr int kSyncAll = -2;

}  // namespace

bool CanGoOn(const Core& core) {
  auto found = core.arrived.find(core.wait_flag);
  return found != core.arrived.end() && !found->second.empty();
}

namespace {

/*! \brief Cores that must set a flag before those that wait for it go on, and who those are. */
struct Parties {
  std::vector<size_t> setters;
  std::vector<size_t> waiters;
};

Parties PartiesOf(int mode) {
  Parties parties;
  const Core& me = *machine.core;
  for (size_t i = 0; i < machine.cores.size(); ++i) {
    const Core& other = *machine.cores[i];
    bool same_kind = other.vector == me.vector, same_block = other.block == me.block;
    bool sets = false, waits = false;
    switch (mode) {
      case 0:  // all cores of one kind
        sets = waits = same_kind;
        break;
      case 1:  // the vector cores of a block
        sets = waits = same_kind && same_block;
        break;
      case 2:  // between the cube core and the vector cores of a block
        sets = same_kind && same_block;
        waits = !same_kind && same_block;
        break;
      default:  // all cores
        sets = waits = true;
    }
    if (sets) parties.setters.push_back(i);
    if (waits) parties.waiters.push_back(i);
  }
  return parties;
}

/*! \brief Add a set; when all that must have set, the flag arrives at those that wait. */
void Set(int mode, int id, const Pipes::Known& known) {
  Parties parties = PartiesOf(mode);
  size_t group = parties.setters.empty() ? 0 : parties.setters[0];
  auto& gathering = machine.gathering[{mode, id, group}];
  gathering[machine.core->pipes.core()].push_back(known);
  for (size_t setter : parties.setters) {
    if (gathering[setter].empty()) return;
  }
  // What all of them know, as a record that any core can take.
  Pipes merged(machine.core->pipes.core(), static_cast<uint32_t>(machine.cores.size()));
  for (size_t setter : parties.setters) {
    merged.Acquire(Pipes::kScalar, gathering[setter].front());
    gathering[setter].pop_front();
  }
  Pipes::Known all = merged.Publish(Pipes::kScalar);
  all.near = {};
  for (size_t waiter : parties.waiters) machine.cores[waiter]->arrived[id].push_back(all);
}

/*! \brief Sleep until the flag is there, and take it. */
void WaitForAll(int id, uint32_t pipe, int line) {
  Core& core = *machine.core;
  core.wait_flag = id;
  core.wait_pipe = pipe;
  core.wait_line = line;
  if (!CanGoOn(core)) WaitForOthers();
  auto& arrived = core.arrived[id];
  core.pipes.Acquire(pipe, arrived.front());
  arrived.pop_front();
}

}  // namespace
}  // namespace uir::ascendc

using namespace uir::ascendc;

extern "C" {

void uir_ascendc_cross_set(int mode, int pipe, int id, int line) {
  Core& core = *machine.core;
  if (mode < 0 || mode > 2 || id < 0 || id > 10) {
    Report(FindingAt(
        "event-id",
        "CrossCoreSetFlag<" + std::to_string(mode) + ">(" + std::to_string(id) + "): modes are 0 to 2, flags 0 to 10",
        kUirMemories, static_cast<uint32_t>(pipe), line));
    return;
  }
  if (mode == 2 && machine.core_kind.rfind("mix", 0) != 0) {
    Report(FindingAt("event-id", "a flag between cube and vector cores in a kernel that has one kind of them",
                     kUirMemories, static_cast<uint32_t>(pipe), line));
    return;
  }
  Set(mode, id, core.pipes.ForOthers(core.pipes.Publish(static_cast<uint32_t>(pipe))));
}

void uir_ascendc_cross_wait(int pipe, int id, int line) { WaitForAll(id, static_cast<uint32_t>(pipe), line); }

void uir_ascendc_sync_all(int vector_only, int line) {
  Core& core = *machine.core;
  if (vector_only && !core.vector) {
    Report(FindingAt("sync-all", "SyncAll<true> on a cube core", kUirMemories, kUirS, line));
    return;
  }
  ++machine.counters["sync_alls"];
  core.pipes.BarrierAll();
  Set(vector_only ? 0 : 3, kSyncAll - vector_only, core.pipes.ForOthers(core.pipes.Publish(kUirS)));
  WaitForAll(kSyncAll - vector_only, kUirS, line);
}

}  // extern "C"
