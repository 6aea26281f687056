// SPDX-License-Identifier: Apache-2.0
// Calls of kernels into the model: places, exchange, barriers, ranges.
#include "device/simt/include/uir_simt/abi.h"

#include <string>

#include "device/simt/machine.h"

using namespace uir::simt;  // this file is the C face of that namespace

#define UIR_SITE reinterpret_cast<uint64_t>(__builtin_return_address(0))

namespace {

/*! \brief An arrival at a call of a warp; the lane must be named in its own mask. */
Arrival ArriveInWarp(Wait wait, unsigned mask, uint64_t site) {
  if (!(mask >> machine.LaneOf() & 1)) {
    Fail(FindingAt("mask", "the mask of a warp's call does not name the lane that calls", "", site));
  }
  Arrival arrival;
  arrival.wait = wait;
  arrival.mask = mask;
  arrival.site = site;
  return arrival;
}

}  // namespace

extern "C" {

unsigned uir_simt_thread(void) { return machine.lane->thread; }
unsigned uir_simt_block(void) { return machine.block->index; }
unsigned uir_simt_block_size(void) { return machine.threads; }
unsigned uir_simt_grid_size(void) { return machine.grid; }
unsigned uir_simt_unwritten(void) { return machine.unwritten.nan(); }

uint64_t uir_simt_shuffle(int kind, unsigned mask, uint64_t value, int argument, int width) {
  Arrival arrival = ArriveInWarp(Wait::kShuffle, mask, UIR_SITE);
  if (width < 1 || width > 32 || (width & (width - 1))) {
    Fail(FindingAt("shuffle-width", "a shuffle in segments of " + std::to_string(width) + " lanes", "", UIR_SITE));
  }
  arrival.kind = kind;
  arrival.value = value;
  arrival.argument = argument;
  arrival.width = width;
  return WaitFor(arrival);
}

unsigned uir_simt_vote(int kind, unsigned mask, int predicate) {
  Arrival arrival = ArriveInWarp(Wait::kVote, mask, UIR_SITE);
  arrival.kind = kind;
  arrival.value = predicate != 0;
  return static_cast<unsigned>(WaitFor(arrival));
}

uint32_t uir_simt_reduce(int kind, int is_signed, unsigned mask, uint32_t value) {
  Arrival arrival = ArriveInWarp(Wait::kReduce, mask, UIR_SITE);
  arrival.kind = kind;
  arrival.value = value;
  arrival.argument = is_signed;
  return static_cast<uint32_t>(WaitFor(arrival));
}

uint32_t uir_simt_match_any(unsigned mask, uint64_t value) {
  Arrival arrival = ArriveInWarp(Wait::kMatch, mask, UIR_SITE);
  arrival.value = value;
  return static_cast<uint32_t>(WaitFor(arrival));
}

void uir_simt_syncwarp(unsigned mask) { WaitFor(ArriveInWarp(Wait::kSyncwarp, mask, UIR_SITE)); }

void uir_simt_syncthreads(void) {
  Arrival arrival;
  arrival.wait = Wait::kBarrier;
  arrival.argument = static_cast<int32_t>(machine.threads);
  arrival.site = UIR_SITE;
  WaitFor(arrival);
}

void uir_simt_named_barrier(int id, int threads) {
  uint64_t site = UIR_SITE;
  if (id < 0 || id > 15) {
    Fail(FindingAt("barrier-count", "barrier " + std::to_string(id) + ": a block has barriers 0 to 15", "", site));
  }
  if (threads < 32 || threads % 32 || threads > static_cast<int>(machine.threads)) {
    Fail(FindingAt("barrier-count",
                   "a barrier of " + std::to_string(threads) + " threads in a block of " +
                       std::to_string(machine.threads) + ": needs a multiple of 32, at most the block",
                   "", site));
  }
  Arrival arrival;
  arrival.wait = Wait::kBarrier;
  arrival.kind = id;
  arrival.argument = threads;
  arrival.site = site;
  WaitFor(arrival);
}

void uir_simt_grid_sync(void) {
  uint64_t site = UIR_SITE;
  if (!machine.cooperative) {
    Fail(FindingAt("divergent-barrier", "a barrier of the grid in a launch that is not cooperative", "", site));
  }
  Arrival arrival;
  arrival.wait = Wait::kGrid;
  arrival.site = site;
  WaitFor(arrival);
}

void uir_simt_shared_range(const void* at, int64_t bytes, int64_t alignment) {
  uint64_t site = UIR_SITE;
  int64_t offset = static_cast<const unsigned char*>(at) - uir_simt_pool;
  if (offset < 0 || bytes < 0 || offset + bytes > static_cast<int64_t>(machine.shared_bytes)) {
    Fail(FindingAt("out-of-bounds",
                   "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " of a pool of " +
                       std::to_string(machine.shared_bytes),
                   "shared", site));
  }
  if (offset % alignment) {
    Fail(FindingAt("misaligned",
                   "a range of shared memory at byte " + std::to_string(offset) + " needs a multiple of " +
                       std::to_string(alignment),
                   "shared", site));
  }
  size_t begin = static_cast<size_t>(offset), end = begin + static_cast<size_t>(bytes);
  for (const SharedRange& range : machine.block->ranges) {
    if (range.begin == begin && range.end == end) return;
  }
  machine.block->ranges.push_back({begin, end});
}

void uir_simt_bad_index(const char* space, int64_t index, int64_t size) {
  Fail(FindingAt("out-of-bounds", "element " + std::to_string(index) + " of " + std::to_string(size), space, UIR_SITE));
}

void uir_simt_trap(const char* what) { Fail(FindingAt("trap", what, "", UIR_SITE)); }

void uir_simt_atomic(const void* at, int bytes) {
  machine.counters[kAtomics] += 1;
  CheckAccess(at, static_cast<uint32_t>(bytes), true, true, UIR_SITE);
}

void uir_simt_mma(int kind, void* d, const void* a, const void* b) {
  Arrival arrival = ArriveInWarp(Wait::kMma, 0xffffffffu, UIR_SITE);
  arrival.kind = kind;
  arrival.d = d;
  arrival.a = a;
  arrival.b = b;
  WaitFor(arrival);
}

void uir_simt_ldmatrix(int matrices, int transposed, uint32_t* r, const void* row) {
  uint64_t site = UIR_SITE;
  // The rows of a matrix are checked as reads of the lanes that give their addresses.
  if (static_cast<int>(machine.LaneOf()) < 8 * matrices) CheckAccess(row, 16, false, false, site);
  Arrival arrival = ArriveInWarp(Wait::kLdmatrix, 0xffffffffu, site);
  arrival.kind = matrices;
  arrival.argument = transposed;
  arrival.d = r;
  arrival.a = row;
  WaitFor(arrival);
}

}  // extern "C"
