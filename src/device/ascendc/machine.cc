// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/machine.h"

#include <algorithm>
#include <cstring>

namespace uir::ascendc {

Machine machine;

using engine::Epoch;
using engine::Finding;

void LocalMemory::Create(uint64_t size) {
  bytes = size;
  data.reset(new uint8_t[size]);
  known.reset(new uint8_t[size]);
  if (!machine.values) return;
  std::memset(data.get(), 0xA5, size);
  std::memset(known.get(), 0, size);
  race = engine::PipeShadow(size);
}

Finding FindingAt(const char* kind, std::string what, uint32_t memory, uint32_t pipe, int line) {
  Finding finding;
  finding.kind = kind;
  finding.what = std::move(what);
  finding.space = memory < kUirMemories ? MemoryName(memory) : "";
  finding.site = static_cast<uint64_t>(std::max(line, 0));
  finding.pipe = pipe < kUirPipes ? PipeName(pipe) : "";
  if (machine.core) {
    finding.block = machine.core->block;
    finding.core = machine.core->Name();
  }
  return finding;
}

void SetOther(Finding* finding, uint64_t epoch) {
  const Core& core = *machine.cores[Epoch::Core(epoch)];
  finding->other_site = Epoch::Line(epoch);
  finding->other_block = core.block;
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
  Fail(FindingAt("time-limit", "the launch exceeds its time limit", kUirMemories, kUirMemories, line));
}

void WaitForOthers() {
  machine.core->waiting = true;
  SwitchFiber(&machine.core->fiber, &machine.scheduler);
}

namespace {

/*! \brief What must be so when a core has run to its end. */
void CheckEnd(const Core& core) {
  for (uint32_t from = 0; from < kUirPipes; ++from) {
    for (uint32_t to = 0; to < kUirPipes; ++to) {
      for (size_t id = 0; id < 8; ++id) {
        const Flag& flag = core.flags[from][to][id];
        if (!flag.up) continue;
        Report(FindingAt("flag-left",
                         std::string("flag ") + PipeName(from) + "_" + PipeName(to) + " " + std::to_string(id) +
                             " is set and never waited for",
                         kUirMemories, from, flag.set_line));
      }
    }
  }
  for (const Queue& queue : core.queues) {
    for (const Queue::Buffer& buffer : queue.buffers) {
      if (buffer.state == Queue::kFree) continue;
      Report(FindingAt("queue", "a buffer of a queue is not freed at the end of the kernel", queue.memory, kUirMemories,
                       buffer.line));
    }
  }
}

void CoreEntry() {
  engine::CallKernel(machine.kernel, machine.args.data(), machine.args.size());
  CheckEnd(*machine.core);
  machine.core->done = true;
  SwitchFiber(&machine.core->fiber, &machine.scheduler);
  __builtin_unreachable();
}

void CreateMemories(Core* core) {
  const auto& bytes = machine.device.bytes;
  if (core->vector) return core->memory[kUirUb].Create(bytes[kUirUb]);
  for (uint32_t memory : {kUirL1, kUirL0a, kUirL0b, kUirL0c, kUirBias, kUirFixbuf}) {
    core->memory[memory].Create(bytes[memory]);
  }
}

/*! \brief Memory of a core that has ended is of no use to anybody. */
void DropMemories(Core* core) {
  for (LocalMemory& memory : core->memory) memory = LocalMemory();
}

void MakeCores() {
  struct Kind {
    bool vector;
    int64_t sub_block;
  };
  std::vector<Kind> kinds{{true, 0}};
  if (machine.core_kind == "aic") kinds = {{false, 0}};
  if (machine.core_kind == "mix_1_1") kinds = {{false, 0}, {true, 0}};
  if (machine.core_kind == "mix_1_2") kinds = {{false, 0}, {true, 0}, {true, 1}};
  auto count = static_cast<uint32_t>(machine.blocks * static_cast<int64_t>(kinds.size()));
  for (int64_t block = 0; block < machine.blocks; ++block) {
    for (const Kind& kind : kinds) {
      auto core = std::make_unique<Core>(static_cast<uint32_t>(machine.cores.size()), count);
      core->vector = kind.vector;
      core->block = block;
      core->sub_block = kind.sub_block;
      auto vectors = static_cast<int64_t>(kinds.size()) - 1;
      core->block_index = vectors > 0 && kind.vector ? block * vectors + kind.sub_block : block;
      machine.cores.push_back(std::move(core));
    }
  }
}

/*! \brief Stacks are reused by cores that begin after others have ended. */
class Stacks {
 public:
  size_t Take() {
    if (free_.empty()) return next_++;
    size_t stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void Give(size_t stack) { free_.push_back(stack); }

 private:
  std::vector<size_t> free_;
  size_t next_{0};
};

void ReportStuck() {
  for (auto& core : machine.cores) {
    if (core->done) continue;
    machine.core = core.get();
    bool all = core->wait_flag < 0;
    Report(
        FindingAt("deadlock",
                  all ? "waits in SyncAll for cores that have ended or wait for something else"
                      : "waits for flag " + std::to_string(core->wait_flag) + " of another core, which never sets it",
                  kUirMemories, core->wait_pipe, core->wait_line));
  }
  machine.core = nullptr;
}

}  // namespace

void RunCores() {
  MakeCores();
  Stacks stacks;
  std::vector<bool> started(machine.cores.size(), false);
  for (bool progress = true; progress && !machine.aborted;) {
    progress = false;
    for (size_t i = 0; i < machine.cores.size() && !machine.aborted; ++i) {
      Core& core = *machine.cores[i];
      if (core.done || (core.waiting && !CanGoOn(core))) continue;
      if (!started[i]) {
        started[i] = true;
        CreateMemories(&core);
        core.stack = stacks.Take();
        StartFiber(&core.fiber, machine.stacks.Bottom(core.stack), engine::FiberStacks::Usable(core.stack), CoreEntry);
      }
      core.waiting = false;
      machine.core = &core;
      SwitchFiber(&machine.scheduler, &core.fiber);
      machine.core = nullptr;
      progress = true;
      if (core.done) {
        stacks.Give(core.stack);
        DropMemories(&core);
      }
    }
  }
  bool ended = std::all_of(machine.cores.begin(), machine.cores.end(), [](const auto& core) { return core->done; });
  if (!ended && !machine.aborted) ReportStuck();
}

}  // namespace uir::ascendc
