// SPDX-License-Identifier: Apache-2.0
// Waits for the queues of a core, and meetings of cores.
//
// A wait holds what is issued after it. A meeting waits for all queues of its cores first: kernels of the vendor copy
// asynchronously, meet, and use the data on another core.
#include <string>

#include "device/bang/machine.h"

using namespace uir::bang;
using uir::engine::Pipes;

namespace {

constexpr const char* kNames[] = {
    "__sync",         "__sync_io",  "__sync_move",    "__sync_compute", "__sync_io_move_compute",
    "__sync_cluster", "__sync_all", "__sync_all_ipu", "__sync_all_mpu"};

/*! \brief The scalar unit holds what follows until a queue is empty. */
void Drain(uint32_t pipe, bool orders) {
  Pipes& pipes = machine.core->pipes;
  Pipes::Known known = pipes.Publish(pipe);
  if (!orders) {
    double time = known.time;
    known = {};
    known.time = time;
  }
  pipes.Acquire(Pipes::kScalar, known);
}

void TakeTime() {
  Pipes& pipes = machine.core->pipes;
  pipes.Occupy(Pipes::kScalar, pipes.Ready(Pipes::kScalar) + machine.device.sync_cycles, 0);
}

/*! \brief Come to a meeting of `count` cores of the cluster; the last one lets all go. */
void Meet(Meeting meeting, size_t count, bool orders, int line) {
  Core& core = *machine.core;
  auto& met = machine.clusters[static_cast<size_t>(core.group)].met[meeting];
  Pipes::Known known = core.pipes.Publish(Pipes::kScalar);
  double time = core.pipes.End();
  if (orders) {
    known = core.pipes.ForOthers(known);
  } else {
    known = {};
  }
  known.time = time;
  met.emplace_back(core.pipes.core(), known);
  if (met.size() < count) {
    core.waiting = meeting;
    core.wait_line = line;
    return WaitForOthers();
  }
  Pipes merged(core.pipes.core(), static_cast<uint32_t>(machine.cores.size()));
  for (const auto& entry : met) merged.Acquire(Pipes::kScalar, entry.second);
  Pipes::Known all = merged.Publish(Pipes::kScalar);
  all.near = {};
  all.time += machine.device.cluster_sync_cycles;
  for (const auto& entry : met) {
    Core& other = *machine.cores[entry.first];
    other.pipes.Acquire(Pipes::kScalar, all);
    other.may_go = other.waiting != Meeting::kNone;
  }
  met.clear();
}

/*! \brief A meeting of cores, or a finding where the launch has none. */
void MeetOthers(int kind, bool orders, int line) {
  Core& core = *machine.core;
  if (!machine.union_launch()) {
    Report(FindingAt("block-sync",
                     std::string(kNames[kind]) +
                         ": tasks of a Block launch do not wait for each other; a Union1 launch "
                         "has clusters",
                     kBangMemories, kBangPipes, line));
    return;
  }
  bool ipus = kind == kBangSyncAllIpu;
  if (core.memory_core && ipus) return;
  if (kind == kBangSyncAllMpu) return;  // one memory core: there is nobody to meet
  ++machine.counters["meetings"];
  for (uint32_t pipe = 1; pipe < kBangPipes; ++pipe) Drain(pipe, orders);
  auto count = static_cast<size_t>(machine.units) + (ipus ? 0 : 1);
  Meet(ipus ? Meeting::kAllIpu : Meeting::kCluster, count, orders, line);
}

}  // namespace

extern "C" void uir_bang_sync(int kind, int orders, int line) {
  CheckDeadline(line);
  switch (kind) {
    case kBangSyncIo:
      Drain(kBangIo, orders);
      break;
    case kBangSyncMove:
      Drain(kBangMove, orders);
      break;
    case kBangSyncCompute:
      Drain(kBangCompute, orders);
      break;
    case kBangSync:
    case kBangSyncIoMoveCompute:
      for (uint32_t pipe = 1; pipe < kBangPipes; ++pipe) Drain(pipe, orders);
      break;
    default:
      return MeetOthers(kind, orders, line);
  }
  ++machine.counters["syncs"];
  TakeTime();
}
