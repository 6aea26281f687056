// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: they happen as late as they may, when somebody waits for them.
//
// Until then their bytes are in flight, and whoever touches them is told. Rules are those of the PTX ISA:
// "cp.async", "cp.async.wait_group", "mbarrier", "cp.async.bulk".
#include <cstring>
#include <string>

#include "device/simt/include/uir_simt/abi.h"
#include "device/simt/machine.h"

namespace uir::simt {

namespace {

bool InPool(const void* address, uint32_t bytes) {
  size_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(uir_simt_pool);
  return offset < kPoolBytes && offset + bytes <= machine.shared_bytes;
}

size_t PoolOffset(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(uir_simt_pool);
}

/*! \brief Check both sides of a copy as accesses of the lane that issues it, and put its bytes in flight. */
AsyncCopy Issue(void* shared, const void* global, uint32_t bytes, uint32_t valid, uint64_t site) {
  if (!InPool(shared, bytes)) {
    Fail(FindingAt("out-of-bounds", "an asynchronous copy goes to no shared memory of the block", "shared", site));
  }
  uintptr_t alignment = bytes >= 16 ? 16 : bytes;
  if (reinterpret_cast<uintptr_t>(shared) % alignment || (valid && reinterpret_cast<uintptr_t>(global) % alignment)) {
    Fail(FindingAt("misaligned",
                   "an asynchronous copy of " + std::to_string(bytes) +
                       " bytes needs addresses that are multiples of " + std::to_string(alignment),
                   "shared", site));
  }
  if (valid) {
    if (!engine::Memory::Global().InRange(global)) {
      Fail(FindingAt("out-of-bounds", "an asynchronous copy comes from no global memory", "global", site));
    }
    CheckAccess(global, valid, false, false, site);
  }
  CheckAccess(shared, bytes, true, false, site);
  machine.pending_write = nullptr;
  size_t offset = PoolOffset(shared);
  Block& block = *machine.block;
  block.written.Erase(offset, bytes);
  block.in_flight.Insert(offset, bytes);
  block.in_flight_bytes += bytes;
  return {offset, static_cast<const uint8_t*>(global), bytes, valid, site};
}

Mbarrier* Find(uint64_t* bar, uint64_t site) {
  if (!InPool(bar, 8) || PoolOffset(bar) % 8) {
    Fail(FindingAt("mbarrier", "a barrier object is 8 aligned bytes of shared memory; this is not", "shared", site));
  }
  auto found = machine.block->mbarriers.find(PoolOffset(bar));
  if (found == machine.block->mbarriers.end()) {
    Fail(FindingAt("mbarrier", "a barrier object that was not initialised", "shared", site));
  }
  return &found->second;
}

/*! \brief Fences behind which the engine that copies sees a lane's barrier objects. */
uint32_t FencesOf(const Lane& lane) { return lane.fences + lane.init_fences; }

/*! \brief The engine arrives at a barrier object: its initialisation must have happened before, and be fenced. */
void CheckVisible(uint64_t* bar, const Mbarrier& state, uint64_t site) {
  CheckEngineRead(PoolOffset(bar), 8, site);
  if (FencesOf(machine.block->lanes[state.made_by]) != state.made_after) return;
  engine::Finding finding =
      FindingAt("proxy",
                "a bulk copy takes a barrier object that thread " + std::to_string(state.made_by) +
                    " initialised without a fence_async or fence_mbarrier_init since",
                "shared", site);
  finding.other_thread = state.made_by;
  finding.other_block = machine.block->index;
  Report(finding);
}

/*! \brief End the phase when all arrivals and all bytes are there. */
bool TryComplete(Mbarrier* bar) {
  if (bar->pending > 0 || bar->issued_bytes != bar->expected_bytes) return false;
  for (size_t i = 0; i < bar->copies.size(); ++i) {
    CompleteCopies({bar->copies[i]}, bar->issuers[i], false);
    bar->arrived.push_back(machine.block->clocks.Publish(bar->issuers[i]));
  }
  bar->copies.clear();
  bar->issuers.clear();
  bar->completed = std::move(bar->arrived);
  bar->arrived.clear();
  bar->pending = bar->count;
  bar->expected_bytes = bar->issued_bytes = 0;
  ++bar->phase;
  return true;
}

}  // namespace

void CompleteCopies(const std::vector<AsyncCopy>& copies, uint32_t thread, bool generic) {
  Block& block = *machine.block;
  for (const AsyncCopy& copy : copies) {
    std::memcpy(uir_simt_pool + copy.shared, copy.global, copy.valid);
    std::memset(uir_simt_pool + copy.shared + copy.valid, 0, copy.bytes - copy.valid);
    block.in_flight.Erase(copy.shared, copy.bytes);
    block.in_flight_bytes -= copy.bytes;
    block.written.Insert(copy.shared, copy.bytes);
    for (size_t chunk = copy.shared / 16; chunk * 16 < copy.shared + copy.bytes; ++chunk) {
      block.chunks[chunk].writer = generic ? thread + 1 : 0;
      block.chunks[chunk].fences = block.lanes[thread].fences;
    }
    // From here on the bytes are as if this thread had written them now.
    engine::Accessor by{&block.clocks, thread, block.index, 1, machine.Offset(copy.site)};
    block.race.Write(by, copy.shared, copy.bytes, false);
  }
}

bool MeetAtMbarriers(Block* block) {
  bool met = false;
  for (Lane& lane : block->lanes) {
    if (lane.done || lane.arrival.wait != Wait::kMbarrier) continue;
    auto found = block->mbarriers.find(static_cast<size_t>(lane.arrival.value));
    if (found == block->mbarriers.end()) continue;
    Mbarrier& bar = found->second;
    if ((bar.phase & 1) == static_cast<uint32_t>(lane.arrival.argument)) TryComplete(&bar);
    if ((bar.phase & 1) == static_cast<uint32_t>(lane.arrival.argument)) continue;
    for (auto& record : bar.completed) block->clocks.Acquire(lane.thread, *record.get());
    lane.arrival.wait = Wait::kNone;
    met = true;
  }
  return met;
}

}  // namespace uir::simt

using namespace uir::simt;  // the C functions below are this file's second half

#define UIR_SITE reinterpret_cast<uint64_t>(__builtin_return_address(0))

extern "C" {

void uir_simt_cp_async(void* shared, const void* global, int bytes, int valid) {
  uint64_t site = UIR_SITE;
  if (valid < 0 || valid > bytes) {
    Fail(FindingAt("async-size",
                   "an asynchronous copy of " + std::to_string(valid) + " of " + std::to_string(bytes) + " bytes",
                   "shared", site));
  }
  machine.counters[kAsyncCopies] += 1;
  AsyncCopy copy = Issue(shared, global, static_cast<uint32_t>(bytes), static_cast<uint32_t>(valid), site);
  machine.lane->open.push_back(copy);
}

void uir_simt_cp_async_commit(void) {
  CheckPendingWrite();
  machine.lane->committed.push_back(std::move(machine.lane->open));
  machine.lane->open.clear();
}

void uir_simt_cp_async_wait(int groups) {
  CheckPendingWrite();
  auto& committed = machine.lane->committed;
  size_t kept = static_cast<size_t>(groups);
  if (committed.size() <= kept) return;
  size_t done = committed.size() - kept;
  for (size_t i = 0; i < done; ++i) CompleteCopies(committed[i], machine.lane->thread, true);
  committed.erase(committed.begin(), committed.begin() + static_cast<std::ptrdiff_t>(done));
}

void uir_simt_mbarrier_init(uint64_t* bar, int count) {
  uint64_t site = UIR_SITE;
  if (!InPool(bar, 8) || PoolOffset(bar) % 8) {
    Fail(FindingAt("mbarrier", "a barrier object is 8 aligned bytes of shared memory; this is not", "shared", site));
  }
  if (count < 1 || count >= 1 << 20) {
    Fail(FindingAt("mbarrier", "a barrier object for " + std::to_string(count) + " arrivals", "shared", site));
  }
  CheckAccess(bar, 8, true, false, site);
  machine.pending_write = nullptr;
  Mbarrier fresh;
  fresh.count = fresh.pending = count;
  fresh.made_by = machine.lane->thread;
  fresh.made_after = FencesOf(*machine.lane);
  machine.block->mbarriers[PoolOffset(bar)] = std::move(fresh);
}

void uir_simt_mbarrier_arrive(uint64_t* bar, int tx_bytes) {
  uint64_t site = UIR_SITE;
  Mbarrier* state = Find(bar, site);
  CheckAccess(bar, 8, false, false, site);  // its initialisation must have happened before
  if (state->pending == 0 && !TryComplete(state)) {
    Fail(FindingAt("mbarrier", "more arrivals than the phase of the barrier object has", "shared", site));
  }
  --state->pending;
  state->expected_bytes += tx_bytes;
  state->arrived.push_back(machine.block->clocks.Publish(machine.lane->thread));
}

void uir_simt_mbarrier_wait(uint64_t* bar, int parity) {
  uint64_t site = UIR_SITE;
  Find(bar, site);
  CheckAccess(bar, 8, false, false, site);
  Arrival arrival;
  arrival.wait = Wait::kMbarrier;
  arrival.value = PoolOffset(bar);
  arrival.argument = parity & 1;
  arrival.site = site;
  WaitFor(arrival);
}

void uir_simt_bulk_copy(void* shared, const void* global, int bytes, uint64_t* bar) {
  uint64_t site = UIR_SITE;
  Mbarrier* state = Find(bar, site);
  CheckVisible(bar, *state, site);
  if (bytes <= 0 || bytes % 16) {
    Fail(FindingAt("async-size", "a bulk copy of " + std::to_string(bytes) + " bytes: not a multiple of 16", "shared",
                   site));
  }
  machine.counters[kBulkCopies] += 1;
  AsyncCopy copy = Issue(shared, global, static_cast<uint32_t>(bytes), static_cast<uint32_t>(bytes), site);
  state->issued_bytes += bytes;
  state->copies.push_back(copy);
  state->issuers.push_back(machine.lane->thread);
}

void uir_simt_fence_async(void) {
  CheckPendingWrite();
  ++machine.lane->fences;
}

void uir_simt_fence_mbarrier_init(void) {
  CheckPendingWrite();
  ++machine.lane->init_fences;
}

}  // extern "C"
