// SPDX-License-Identifier: Apache-2.0
// Where lanes meet: exchange between the lanes of a warp, and barriers.
//
// The rules are those of the CUDA C++ Programming Guide ("Warp Shuffle Functions", "Warp Vote Functions",
// "Synchronization Functions"): a lane that calls must be named in its mask; all lanes named that have not ended must
// call the same function with the same mask; a shuffle orders no memory; a barrier of the block is reached by all
// threads of the block, at the same place.
#include <algorithm>
#include <cstring>
#include <string>

#include "device/simt/include/uir_simt/abi.h"
#include "device/simt/include/uir_simt/unwritten.h"
#include "device/simt/machine.h"

namespace uir::simt {

using engine::Finding;

namespace {

const char* NameOfWait(Wait wait) {
  static const char* const names[] = {
      "nothing", "a shuffle", "a vote",    "a warp reduction",      "a match",     "__syncwarp",
      "an mma",  "ldmatrix",  "a barrier", "a barrier of the grid", "an mbarrier", "a product of four warps"};
  return names[static_cast<size_t>(wait)];
}

bool InWarp(Wait wait) { return wait >= Wait::kShuffle && wait <= Wait::kLdmatrix; }

bool SameCall(const Arrival& a, const Arrival& b) { return a.wait == b.wait && a.mask == b.mask && a.kind == b.kind; }

std::string Hex(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

/*! \brief Report a fault of a lane that waits. */
Finding FindingOf(const Block& block, const Lane& lane, const char* kind, const std::string& what) {
  Finding finding;
  finding.kind = kind;
  finding.what = what;
  finding.site = lane.arrival.site;
  finding.block = block.index;
  finding.thread = lane.thread;
  return finding;
}

void Shuffle(Block* block, Lane* lanes, uint32_t members) {
  for (uint32_t rest = members; rest; rest &= rest - 1) {
    uint32_t me = static_cast<uint32_t>(__builtin_ctz(rest));
    Lane& lane = lanes[me];
    const Arrival& call = lane.arrival;
    int width = call.width, argument = call.argument;
    int segment = static_cast<int>(me) & ~(width - 1), within = static_cast<int>(me) & (width - 1);
    int source = static_cast<int>(me);
    switch (call.kind) {
      case kUirShuffle:
        source = segment + (argument & (width - 1));
        break;
      case kUirShuffleXor: {
        // Earlier segments may be read, later ones not.
        int other = within ^ argument;
        source = segment + other < segment + width ? segment + other : static_cast<int>(me);
        break;
      }
      case kUirShuffleUp:
        source = within - argument >= 0 ? static_cast<int>(me) - argument : static_cast<int>(me);
        break;
      default:
        source = within + argument < width ? static_cast<int>(me) + argument : static_cast<int>(me);
        break;
    }
    if (!(members >> source & 1)) {
      Report(FindingOf(*block, lane, "shuffle-source",
                       "a shuffle reads lane " + std::to_string(source) + ", which does not take part (mask " +
                           Hex(call.mask) + ")"));
      lane.result = uint64_t{uir_simt::unwritten_bytes(machine.unwritten.nan())} << 32 | machine.unwritten.nan();
      continue;
    }
    lane.result = lanes[source].arrival.value;
  }
  machine.counters[kShuffles] += 1;
}

void Vote(Lane* lanes, uint32_t members, int kind) {
  uint32_t ballot = 0;
  for (uint32_t rest = members; rest; rest &= rest - 1) {
    uint32_t me = static_cast<uint32_t>(__builtin_ctz(rest));
    if (lanes[me].arrival.value) ballot |= 1u << me;
  }
  uint64_t result = kind == kUirBallot ? ballot : kind == kUirAll ? ballot == members : ballot != 0;
  for (uint32_t rest = members; rest; rest &= rest - 1) lanes[__builtin_ctz(rest)].result = result;
  machine.counters[kVotes] += 1;
}

uint32_t Combine(int kind, bool is_signed, uint32_t a, uint32_t b) {
  switch (kind) {
    case kUirAdd:
      return a + b;
    case kUirMin:
      return is_signed ? static_cast<uint32_t>(std::min(static_cast<int32_t>(a), static_cast<int32_t>(b)))
                       : std::min(a, b);
    case kUirMax:
      return is_signed ? static_cast<uint32_t>(std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)))
                       : std::max(a, b);
    case kUirAnd:
      return a & b;
    case kUirOr:
      return a | b;
    default:
      return a ^ b;
  }
}

void Reduce(Lane* lanes, uint32_t members, int kind, bool is_signed) {
  uint32_t rest = members;
  uint32_t result = static_cast<uint32_t>(lanes[__builtin_ctz(rest)].arrival.value);
  for (rest &= rest - 1; rest; rest &= rest - 1) {
    result = Combine(kind, is_signed, result, static_cast<uint32_t>(lanes[__builtin_ctz(rest)].arrival.value));
  }
  for (rest = members; rest; rest &= rest - 1) lanes[__builtin_ctz(rest)].result = result;
  machine.counters[kVotes] += 1;
}

void Match(Lane* lanes, uint32_t members) {
  for (uint32_t rest = members; rest; rest &= rest - 1) {
    Lane& lane = lanes[__builtin_ctz(rest)];
    uint32_t same = 0;
    for (uint32_t other = members; other; other &= other - 1) {
      uint32_t at = static_cast<uint32_t>(__builtin_ctz(other));
      if (lanes[at].arrival.value == lane.arrival.value) same |= 1u << at;
    }
    lane.result = same;
  }
  machine.counters[kVotes] += 1;
}

/*! \brief Do what the members of a complete call asked for. */
void Perform(Block* block, uint32_t warp, uint32_t members) {
  Lane* lanes = &block->lanes[warp * kWarp];
  const Arrival& call = lanes[__builtin_ctz(members)].arrival;
  switch (call.wait) {
    case Wait::kShuffle:
      Shuffle(block, lanes, members);
      break;
    case Wait::kVote:
      Vote(lanes, members, call.kind);
      break;
    case Wait::kReduce:
      Reduce(lanes, members, call.kind, call.argument != 0);
      break;
    case Wait::kMatch:
      Match(lanes, members);
      break;
    case Wait::kMma:
      ComputeMma(call.kind, lanes);
      machine.counters[kMmas] += 1;
      break;
    case Wait::kLdmatrix:
      LoadMatrices(call.kind, call.argument != 0, block, warp);
      machine.counters[kLdmatrixes] += 1;
      break;
    default: {
      uint32_t threads[kWarp], count = 0;
      for (uint32_t rest = members; rest; rest &= rest - 1) {
        threads[count++] = warp * kWarp + static_cast<uint32_t>(__builtin_ctz(rest));
      }
      block->clocks.Meet(threads, count);
      machine.counters[kSyncwarps] += 1;
    }
  }
}

}  // namespace

bool MeetInWarp(Block* block, uint32_t warp) {
  uint32_t first = warp * kWarp, count = std::min(kWarp, machine.threads - first);
  Lane* lanes = &block->lanes[first];
  bool met = false;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Arrival call = lanes[i].arrival;
    if (seen >> i & 1 || lanes[i].done || !InWarp(call.wait)) continue;
    uint32_t members = 0, missing = 0;
    for (uint32_t other = 0; other < count; ++other) {
      if (!(call.mask >> other & 1)) continue;
      const Lane& lane = lanes[other];
      if (!lane.done && SameCall(lane.arrival, call)) {
        members |= 1u << other;
      } else if (lane.done && call.wait != Wait::kMma && call.wait != Wait::kLdmatrix) {
        // A lane that has ended is not waited for, but what it would have given is missing: shuffles say so.
      } else {
        missing |= 1u << other;
      }
    }
    seen |= members;
    if (missing) continue;
    if (members == call.mask || count < kWarp) machine.trace.Flush(&machine.counters);
    Perform(block, warp, members);
    if (machine.aborted) return false;
    for (uint32_t rest = members; rest; rest &= rest - 1) lanes[__builtin_ctz(rest)].arrival.wait = Wait::kNone;
    met = true;
  }
  return met;
}

namespace {

/*! \brief Threads that meet at a barrier of the whole block must come from one place in the text. */
void CheckSamePlace(const Block& block, const std::vector<uint32_t>& threads) {
  uint64_t site = block.lanes[threads[0]].arrival.site;
  for (uint32_t thread : threads) {
    uint64_t other = block.lanes[thread].arrival.site;
    if (other == site) continue;
    engine::Line a = engine::LineOf(site), b = engine::LineOf(other);
    if (a.kernel == b.kernel && a.inner == b.inner) continue;  // one place that the compiler copied
    Finding finding = FindingOf(block, block.lanes[thread], "divergent-barrier",
                                "threads of a block meet in different __syncthreads");
    finding.other_site = site;
    finding.other_thread = threads[0];
    finding.other_block = block.index;
    Report(finding);
    return;
  }
}

}  // namespace

bool MeetInBlock(Block* block) {
  bool met = false;
  for (int id = 0; id < 16; ++id) {
    std::vector<uint32_t> threads;
    uint32_t expected = 0;
    for (const Lane& lane : block->lanes) {
      if (lane.done || lane.arrival.wait != Wait::kBarrier || lane.arrival.kind != id) continue;
      uint32_t count = static_cast<uint32_t>(lane.arrival.argument);
      if (!threads.empty() && count != expected) {
        Finding finding = FindingOf(*block, lane, "barrier-count",
                                    "barrier " + std::to_string(id) + " is asked for " + std::to_string(count) +
                                        " threads here and for " + std::to_string(expected) + " elsewhere");
        finding.other_site = block->lanes[threads[0]].arrival.site;
        finding.other_thread = threads[0];
        Report(finding);
        Abort();
        return false;
      }
      expected = count;
      threads.push_back(lane.thread);
    }
    if (threads.empty() || threads.size() < expected) continue;
    if (threads.size() > expected) {
      Report(FindingOf(*block, block->lanes[threads.back()], "barrier-count",
                       "barrier " + std::to_string(id) + " of " + std::to_string(expected) + " threads is reached by " +
                           std::to_string(threads.size())));
      Abort();
      return false;
    }
    if (id == 0) CheckSamePlace(*block, threads);
    block->clocks.Meet(threads.data(), static_cast<uint32_t>(threads.size()));
    machine.counters[id == 0 ? kSyncthreads : kNamedBarriers] += 1;
    for (uint32_t thread : threads) block->lanes[thread].arrival.wait = Wait::kNone;
    met = true;
  }
  return met;
}

void ReportStuck(Block* block) {
  const Lane* stuck = nullptr;
  for (const Lane& lane : block->lanes) {
    if (!lane.done && (!stuck || lane.arrival.wait != Wait::kBarrier)) {
      stuck = &lane;
      if (lane.arrival.wait != Wait::kBarrier) break;
    }
  }
  if (!stuck) return;
  const Arrival& call = stuck->arrival;
  // Whoever it waits for: a thread that ended or waits for something else.
  const Lane* absent = nullptr;
  for (const Lane& lane : block->lanes) {
    if (InWarp(call.wait)) {
      if (lane.thread / kWarp != stuck->thread / kWarp || !(call.mask >> lane.thread % kWarp & 1)) continue;
    }
    if (call.wait == Wait::kWgmma && lane.thread / (4 * kWarp) != stuck->thread / (4 * kWarp)) continue;
    if (lane.done || !SameCall(lane.arrival, call)) {
      absent = &lane;
      break;
    }
  }
  std::string what = std::string("waits for ever in ") + NameOfWait(call.wait);
  if (InWarp(call.wait)) what += " (mask " + Hex(call.mask) + ")";
  if (call.wait == Wait::kMbarrier) what += ": its phase never completes";
  if (absent && call.wait != Wait::kMbarrier) {
    what += ": thread " + std::to_string(absent->thread) +
            (absent->done ? " has ended" : std::string(" waits in ") + NameOfWait(absent->arrival.wait));
    if (!absent->done && absent->arrival.wait == call.wait && InWarp(call.wait)) {
      what += " with mask " + Hex(absent->arrival.mask);
    }
  }
  const char* kind = call.wait == Wait::kMbarrier ? "mbarrier"
                     : InWarp(call.wait)          ? "divergent-warp"
                     : call.wait == Wait::kWgmma  ? "divergent-warp"
                                                  : "divergent-barrier";
  Finding finding = FindingOf(*block, *stuck, kind, what);
  if (absent && !absent->done) {
    finding.other_site = absent->arrival.site;
    finding.other_thread = absent->thread;
    finding.other_block = block->index;
  }
  Report(finding);
}

}  // namespace uir::simt
