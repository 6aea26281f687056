// SPDX-License-Identifier: Apache-2.0
#include "device/bang/machine.h"

#include <algorithm>
#include <cstring>

namespace uir::bang {

Machine machine;

using engine::Epoch;
using engine::Finding;

void LocalMemory::Create(const engine::Section& of) {
  section = of;
  if (!section.bytes) return;
  known.reset(new uint8_t[section.bytes]);
  if (!machine.values) return;
  std::memset(known.get(), 0, section.bytes);
  std::memset(section.begin, 0xA5, section.bytes);
  race = engine::PipeShadow(section.bytes);
}

void LocalMemory::Enter() {
  if (aside) std::memcpy(section.begin, aside.get(), section.bytes);
}

void LocalMemory::Leave() {
  if (!section.bytes || !machine.values) return;
  if (!aside) aside.reset(new uint8_t[section.bytes]);
  std::memcpy(aside.get(), section.begin, section.bytes);
}

LocalMemory* Machine::MemoryOf(uint32_t memory) {
  switch (memory) {
    case kBangNram:
      return core->memory_core ? nullptr : &core->nram;
    case kBangWram:
      return core->memory_core ? nullptr : &core->wram;
    case kBangLdram:
      return &core->ldram;
    case kBangSram:
      return union_launch() ? &clusters[static_cast<size_t>(core->group)].sram : nullptr;
    default:
      return nullptr;
  }
}

uint32_t Machine::Where(const void* address) const {
  for (uint32_t memory = 0; memory < kBangMemories; ++memory) {
    if (sections[memory].Holds(address)) return memory;
  }
  return engine::Memory::Global().InRange(address) ? uint32_t{kBangGdram} : uint32_t{kBangMemories};
}

Finding FindingAt(const char* kind, std::string what, uint32_t memory, uint32_t pipe, int line) {
  Finding finding;
  finding.kind = kind;
  finding.what = std::move(what);
  finding.space = memory < kBangMemories ? MemoryName(memory) : "";
  finding.site = static_cast<uint64_t>(std::max(line, 0));
  finding.pipe = PipeName(pipe);
  if (machine.core) {
    finding.block = machine.core->group;
    finding.core = machine.core->Name();
  }
  return finding;
}

void SetOther(Finding* finding, uint64_t epoch) {
  const Core& core = *machine.cores[Epoch::Core(epoch)];
  finding->other_site = Epoch::Line(epoch);
  finding->other_block = core.group;
  finding->other_core = core.Name();
  finding->other_pipe = PipeName(Epoch::Pipe(epoch));
}

void Report(Finding finding) { machine.findings->Add(std::move(finding)); }

/*! Ends the launch; the core that runs does not go on. */
[[noreturn]] static void Abort() {
  machine.aborted = true;
  SwitchFiber(&machine.core->fiber, &machine.scheduler);
  __builtin_unreachable();
}

void Fail(Finding finding) {
  Report(std::move(finding));
  Abort();
}

void NeedValues() {
  machine.looked = true;
  if (!machine.values) Abort();
}

void CheckDeadline(int line) {
  if (!machine.Late()) return;
  Fail(FindingAt("time-limit", "the launch exceeds its time limit", kBangMemories, kBangPipes, line));
}

void WaitForOthers() { SwitchFiber(&machine.core->fiber, &machine.scheduler); }

namespace {

/*! \brief A core's memories while it does not run. */
void LeaveMemories(Core* core) {
  for (LocalMemory* memory : {&core->nram, &core->wram, &core->ldram}) memory->Leave();
}

void EnterCore(Core* core, bool first) {
  if (!first) {
    for (LocalMemory* memory : {&core->nram, &core->wram, &core->ldram}) memory->Enter();
    return;
  }
  if (!core->memory_core) {
    core->nram.Create(machine.sections[kBangNram]);
    core->wram.Create(machine.sections[kBangWram]);
  }
  core->ldram.Create(machine.sections[kBangLdram]);
}

void CoreEntry() {
  engine::CallKernel(machine.kernel, machine.args.data(), machine.args.size());
  machine.core->done = true;
  SwitchFiber(&machine.core->fiber, &machine.scheduler);
  __builtin_unreachable();
}

void MakeCores() {
  machine.cores.clear();
  machine.clusters.clear();
  int64_t each = machine.union_launch() ? machine.units + 1 : 1;
  auto count = static_cast<uint32_t>(machine.groups * each);
  for (int64_t group = 0; group < machine.groups; ++group) {
    for (int64_t lane = 0; lane < each; ++lane) {
      auto core = std::make_unique<Core>(static_cast<uint32_t>(machine.cores.size()), count);
      core->group = group;
      core->lane = lane;
      core->memory_core = lane == machine.units;
      // A memory core belongs to no task: it learns its cluster alone.
      int64_t task = group * machine.units + (core->memory_core ? 0 : lane);
      core->task = {task % machine.dim[0], task / machine.dim[0] % machine.dim[1],
                    task / machine.dim[0] / machine.dim[1]};
      if (core->memory_core) core->task[0] = kMemoryCore;
      machine.cores.push_back(std::move(core));
    }
  }
  if (machine.union_launch()) machine.clusters.resize(static_cast<size_t>(machine.groups));
}

void ReportStuck() {
  for (auto& core : machine.cores) {
    if (core->done || core->waiting == Meeting::kNone) continue;
    machine.core = core.get();
    bool cluster = core->waiting == Meeting::kCluster;
    std::string who = cluster ? "cores of its cluster, the memory core among them," : "IPU cores of its cluster";
    Report(FindingAt("deadlock", "waits for " + who + " that have ended or wait in another call", kBangMemories,
                     kBangPipes, core->wait_line));
  }
  machine.core = nullptr;
}

/*! \brief Copies that only the memory core makes must be reached by it. */
void CheckClusterCopies() {
  for (size_t first = 0; first < machine.cores.size(); first += static_cast<size_t>(machine.units) + 1) {
    const Core& memory_core = *machine.cores[first + static_cast<size_t>(machine.units)];
    for (size_t i = 0; i < static_cast<size_t>(machine.units); ++i) {
      Core& core = *machine.cores[first + i];
      for (const auto& [line, times] : core.cluster_copies) {
        auto found = memory_core.cluster_copies.find(line);
        int64_t made = found == memory_core.cluster_copies.end() ? 0 : found->second;
        if (made >= times) continue;
        machine.core = &core;
        Report(FindingAt("mpu",
                         "a copy between global memory and SRAM is made by the cluster's memory core (coreId 0x80), "
                         "which comes here " +
                             std::to_string(made) + " times, this core " + std::to_string(times) + " times",
                         kBangSram, kBangIo, line));
      }
    }
  }
  machine.core = nullptr;
}

/*! \brief Count the kernel's time: groups beyond those that the device holds follow others. */
void CountTime() {
  int64_t at_once = machine.union_launch() ? machine.device.clusters : machine.device.cores();
  int64_t each = machine.union_launch() ? machine.units + 1 : 1;
  size_t places = static_cast<size_t>(std::min(at_once, machine.groups) * each);
  std::vector<double> end(places, 0);
  if (machine.use.size() < places) machine.use.resize(places, std::vector<engine::PipeUse>(kBangPipes));
  for (size_t i = 0; i < machine.cores.size(); ++i) {
    const Core& core = *machine.cores[i];
    size_t place = i % places;
    end[place] += core.pipes.End();
    for (uint32_t pipe = 0; pipe < kBangPipes; ++pipe) {
      machine.use[place][pipe].busy += core.use[pipe].busy;
      machine.use[place][pipe].instructions += core.use[pipe].instructions;
      machine.use[place][pipe].bytes += core.use[pipe].bytes;
    }
  }
  machine.end += machine.device.kernel_cycles + *std::max_element(end.begin(), end.end());
}

}  // namespace

void RunCores() {
  MakeCores();
  // Clusters share nothing but global memory, so that one runs after the other.
  size_t each = machine.union_launch() ? static_cast<size_t>(machine.units) + 1 : 1;
  for (size_t begin = 0; begin < machine.cores.size() && !machine.aborted; begin += each) {
    std::vector<bool> started(each, false);
    if (machine.union_launch()) machine.clusters[begin / each].sram.Create(machine.sections[kBangSram]);
    for (bool progress = true; progress && !machine.aborted;) {
      progress = false;
      for (size_t i = 0; i < each && !machine.aborted; ++i) {
        Core& core = *machine.cores[begin + i];
        if (core.done || (core.waiting != Meeting::kNone && !core.may_go)) continue;
        EnterCore(&core, !started[i]);
        if (!started[i]) {
          started[i] = true;
          core.stack = i;
          StartFiber(&core.fiber, machine.stacks.Bottom(i), engine::FiberStacks::Usable(i), CoreEntry);
        }
        core.waiting = Meeting::kNone;
        core.may_go = false;
        machine.core = &core;
        SwitchFiber(&machine.scheduler, &core.fiber);
        machine.core = nullptr;
        progress = true;
        if (core.done) {
          for (LocalMemory* memory : {&core.nram, &core.wram, &core.ldram}) *memory = LocalMemory();
        } else {
          LeaveMemories(&core);
        }
      }
    }
    if (machine.union_launch()) machine.clusters[begin / each].sram = LocalMemory();
  }
  bool ended = std::all_of(machine.cores.begin(), machine.cores.end(), [](const auto& core) { return core->done; });
  if (!ended && !machine.aborted) ReportStuck();
  if (ended && machine.union_launch()) CheckClusterCopies();
  CountTime();
}

std::string ModelledJson() {
  const Device& device = machine.device;
  engine::Spent spent;
  spent.clock_hz = device.timed ? device.clock_hz : 0;
  spent.pipes = kBangPipes;
  spent.pipe_name = PipeName;
  for (const auto& core : machine.use) spent.cores.push_back(core.data());
  spent.end = machine.end;
  if (device.memory_bytes_per_cycle > 0) spent.memory = machine.memory_bytes / device.memory_bytes_per_cycle;
  spent.memory_bytes = machine.memory_bytes;
  if (machine.timeline) spent.timeline = &machine.moments;
  return engine::ModelledJson(spent);
}

}  // namespace uir::bang
