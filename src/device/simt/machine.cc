// SPDX-License-Identifier: Apache-2.0
#include "device/simt/machine.h"

#include <algorithm>
#include <cstring>

#include "base/rounding.h"
#include "device/simt/include/uir_simt/abi.h"

extern "C" {
alignas(4096) unsigned char uir_simt_pool[uir::simt::kPoolBytes];
}

namespace uir::simt {

Machine machine;

using engine::Finding;

namespace {

/*! \brief The call in the kernel that led here, by the chain of frames; all of our code keeps frame pointers. */
uint64_t OutermostCall() {
  uint64_t found = 0;
  auto* frame = static_cast<void**>(__builtin_frame_address(0));
  size_t stack = machine.block->first_stack + machine.lane->thread;
  while (machine.stacks.Owner(frame) == static_cast<int64_t>(stack)) {
    auto back = reinterpret_cast<uint64_t>(frame[1]);
    if (back >= machine.module_begin && back < machine.module_end) found = back;
    auto* outer = static_cast<void**>(*frame);
    if (outer <= frame) break;
    frame = outer;
  }
  return found;
}

}  // namespace

Finding FindingAt(const char* kind, std::string what, const char* space, uint64_t site) {
  Finding finding;
  finding.kind = kind;
  finding.what = std::move(what);
  finding.space = space;
  finding.site = site;
  if (machine.block) finding.block = machine.block->index;
  if (machine.lane) {
    finding.thread = machine.lane->thread;
    finding.caller = OutermostCall();
  }
  return finding;
}

void Report(Finding finding) {
  if (machine.unwritten.again()) return;  // found by the run before
  machine.findings->Add(std::move(finding));
}

void Abort() { machine.aborted = true; }

void Fail(Finding finding) {
  Report(std::move(finding));
  Abort();
  SwitchFiber(&machine.lane->fiber, &machine.scheduler);
  __builtin_unreachable();
}

uint64_t WaitFor(Arrival arrival) {
  CheckPendingWrite();
  Lane* lane = machine.lane;
  lane->arrival = arrival;
  SwitchFiber(&lane->fiber, &machine.scheduler);
  return lane->result;
}

void YieldLane() {
  CheckPendingWrite();
  SwitchFiber(&machine.lane->fiber, &machine.scheduler);
}

void CheckPendingWrite() {
  const uint8_t* at = machine.pending_write;
  machine.pending_write = nullptr;
  if (!at || !machine.unwritten.Proved(machine.pending_site, at, machine.pending_bytes)) return;
  machine.findings->Add(FindingAt("unwritten-register", "a register that nothing wrote reaches memory", "register",
                                  machine.pending_site));
}

namespace {

void LaneEntry() {
  engine::CallKernel(machine.kernel, machine.args.data(), machine.args.size());
  CheckPendingWrite();
  machine.lane->done = true;
  --machine.block->live;
  SwitchFiber(&machine.lane->fiber, &machine.scheduler);
  __builtin_unreachable();
}

/*! \brief End a launch that takes too long. */
bool CheckDeadline() {
  if (!machine.has_deadline || std::chrono::steady_clock::now() < machine.deadline) return true;
  Report(FindingAt("time-limit", "the launch exceeds its time limit", "", 0));
  Abort();
  return false;
}

/*! \brief Run the lanes of a warp until all of them wait for something outside of the warp. */
bool RunWarp(Block* block, uint32_t warp) {
  bool progress = false;
  uint32_t first = warp * kWarp, end = std::min(first + kWarp, machine.threads);
  uint32_t turns = 0;
  for (bool again = true; again;) {
    again = false;
    if (++turns % 1024 == 0 && !CheckDeadline()) return false;
    for (uint32_t thread = first; thread < end; ++thread) {
      Lane& lane = block->lanes[thread];
      if (lane.done || lane.arrival.wait != Wait::kNone) continue;
      machine.lane = &lane;
      SwitchFiber(&machine.scheduler, &lane.fiber);
      machine.lane = nullptr;
      if (machine.aborted) return false;
      again = true;
    }
    if (!again) {
      again = MeetInWarp(block, warp);
      if (machine.aborted) return false;
    }
    progress = progress || again;
  }
  machine.trace.Flush(&machine.counters);
  return progress;
}

/*! \brief Run a block until it ends, or all of it waits for the grid. */
void RunBlock(Block* block) {
  machine.block = block;
  uint32_t warps = CeilDiv(machine.threads, kWarp);
  while (block->live && !machine.aborted) {
    bool progress = false;
    for (uint32_t warp = 0; warp < warps && !machine.aborted; ++warp) progress |= RunWarp(block, warp);
    if (machine.aborted || !CheckDeadline()) break;
    progress |= MeetInBlock(block);
    if (machine.aborted) break;
    progress |= MeetAtMbarriers(block);
    progress |= MeetInWarpgroup(block);
    if (machine.aborted) break;
    if (progress) continue;
    if (block->live == 0) break;
    bool all_at_grid = std::all_of(block->lanes.begin(), block->lanes.end(),
                                   [](const Lane& lane) { return !lane.done && lane.arrival.wait == Wait::kGrid; });
    if (all_at_grid) {
      machine.grid_waiting = true;
      break;
    }
    ReportStuck(block);
    Abort();
  }
  machine.block = nullptr;
}

std::unique_ptr<Block> StartBlock(uint32_t index, size_t first_stack) {
  auto block = std::make_unique<Block>(machine.threads);
  block->index = index;
  block->live = machine.threads;
  block->first_stack = first_stack;
  for (uint32_t thread = 0; thread < machine.threads; ++thread) {
    block->lanes[thread].thread = thread;
    StartFiber(&block->lanes[thread].fiber, machine.stacks.Bottom(first_stack + thread),
               engine::FiberStacks::Usable(first_stack + thread), LaneEntry);
  }
  block->written.Resize(machine.shared_bytes);
  block->in_flight.Resize(machine.shared_bytes);
  block->chunks.resize((machine.shared_bytes + 15) / 16);
  block->race.Resize(machine.shared_bytes, machine.shared_shift);
  return block;
}

void NextGeneration() {
  if (++machine.generation > engine::RaceShadow::kMaxGeneration) {
    engine::Memory::Global().ForgetAccesses();
    machine.generation = 1;
  }
}

/*! \brief Shared memory of a block that did not run yet: bytes that no value of another block shows through. */
void ResetPool() { std::memset(uir_simt_pool, 0xA5, machine.shared_bytes); }

void RunIndependent() {
  for (uint32_t index = 0; index < machine.grid && !machine.aborted; ++index) {
    ResetPool();
    std::unique_ptr<Block> block = StartBlock(index, 0);
    RunBlock(block.get());
    machine.shared_shift = block->race.shift();
  }
}

void RunCooperative() {
  std::vector<std::unique_ptr<Block>> blocks;
  for (uint32_t index = 0; index < machine.grid; ++index) {
    blocks.push_back(StartBlock(index, size_t{index} * machine.threads));
    blocks.back()->kept.assign(machine.shared_bytes, 0xA5);
  }
  for (;;) {
    uint32_t waiting = 0, ended = 0;
    for (auto& block : blocks) {
      if (block->live == 0) {
        ++ended;
        continue;
      }
      machine.grid_waiting = false;
      std::memcpy(uir_simt_pool, block->kept.data(), block->kept.size());
      RunBlock(block.get());
      if (machine.aborted) return;
      std::memcpy(block->kept.data(), uir_simt_pool, block->kept.size());
      waiting += machine.grid_waiting;
      ended += !machine.grid_waiting;
    }
    if (waiting == 0) return;
    if (ended) {
      for (auto& block : blocks) {
        if (block->live == 0) continue;
        machine.block = block.get();
        Finding finding = FindingAt("divergent-barrier", "waits for the grid while other blocks have ended", "",
                                    block->lanes[0].arrival.site);
        finding.thread = 0;
        Report(finding);
        machine.block = nullptr;
        return Abort();
      }
    }
    machine.counters[kGridSyncs] += 1;
    NextGeneration();
    std::vector<uint32_t> all(machine.threads);
    for (uint32_t i = 0; i < machine.threads; ++i) all[i] = i;
    for (auto& block : blocks) {
      block->clocks.Meet(all.data(), machine.threads);
      for (Lane& lane : block->lanes) lane.arrival.wait = Wait::kNone;
    }
  }
}

/*! \brief Run all blocks once. */
void RunOnce() {
  machine.has_products = false;
  machine.pending_write = nullptr;
  NextGeneration();
  if (machine.cooperative) {
    RunCooperative();
  } else {
    RunIndependent();
  }
  machine.block = nullptr;
  machine.lane = nullptr;
}

}  // namespace

void RunGrid() {
  machine.unwritten.Begin(machine.args);
  const auto begin = std::chrono::steady_clock::now();
  RunOnce();
  if (machine.unwritten.open()) {
    const Counters counters = machine.counters;
    const bool aborted = machine.aborted;
    machine.aborted = false;
    machine.deadline += std::chrono::steady_clock::now() - begin;
    machine.trace.Reset(machine.module_end - machine.module_begin);
    machine.unwritten.Again();
    RunOnce();
    machine.counters = counters;
    machine.aborted = aborted;
  }
  machine.unwritten.End();
}

}  // namespace uir::simt
