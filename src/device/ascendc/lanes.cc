// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/lanes.h"

#include <algorithm>
#include <string>

#include "base/rounding.h"

namespace uir::ascendc {

namespace {

/*! \brief Add neighbouring elements, joined with the last run where they follow it on all sides and in the lanes. */
void AddRun(Lanes* lanes, const Side* sides, int count, int64_t repeat, int64_t lane, int64_t n) {
  Run run{repeat, lane, n, {}};
  for (int side = 0; side < count; ++side) run.at[side] = sides[side].At(repeat, lane);
  if (!lanes->runs.empty()) {
    Run& last = lanes->runs.back();
    // with part of a repeat under the mask, what follows in memory need not be the next lane
    bool follows = last.repeat * lanes->per_repeat + last.lane + last.count == repeat * lanes->per_repeat + lane;
    for (int side = 0; side < count; ++side) {
      follows = follows && run.at[side] == last.at[side] + last.count * sides[side].size;
    }
    if (follows) {
      last.count += n;
      return;
    }
  }
  lanes->runs.push_back(run);
}

}  // namespace

void CheckRepeat(int64_t repeat, Instruction* instruction) {
  if (repeat >= 0 && repeat <= kMostRepeats) return;
  instruction->Fault("repeat", "repeatTime is " + std::to_string(repeat) + "; 0 to 255 are possible");
}

void CheckStride(const UirStride& stride, int64_t most_block, int64_t most_repeat, Instruction* instruction) {
  auto check = [&](const char* name, int64_t given, int64_t most) {
    if (given >= 0 && given <= most) return;
    instruction->Fault("limit", std::string("a ") + name + " stride is " + std::to_string(given) + "; 0 to " +
                                    std::to_string(most) + " are possible");
  };
  check("block", stride.block, most_block);
  check("repeat", stride.repeat, most_repeat);
}

Mask MaskOf(const UirLanes& lanes, int64_t per_repeat, Instruction* instruction) {
  Mask mask{{0, 0}};
  if (lanes.form == kUirMasked) {
    uint64_t n = lanes.mask[0];
    if (n < 1 || n > static_cast<uint64_t>(per_repeat)) {
      instruction->Fault("mask", "the mask is " + std::to_string(n) + "; a repeat has 1 to " +
                                     std::to_string(per_repeat) + " elements of this type");
      return mask;
    }
    mask.bits[0] = n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
    mask.bits[1] = n > 64 ? (n >= 128 ? ~uint64_t{0} : (uint64_t{1} << (n - 64)) - 1) : 0;
    return mask;
  }
  const uint64_t* bits = lanes.form == kUirRegister ? machine.core->mask : lanes.mask;
  mask = {{bits[0], bits[1]}};
  // The register may have more bits than the type has lanes; a mask that the text gives may not.
  bool beyond = per_repeat <= 64 && bits[1] != 0 && lanes.form == kUirBits;
  if (per_repeat <= 64) mask.bits[1] = 0;
  if (per_repeat < 64) mask.bits[0] &= (uint64_t{1} << per_repeat) - 1;
  instruction->Need(!beyond && (mask.bits[0] || mask.bits[1]), "mask",
                    beyond ? "the mask has bits beyond the elements of a repeat" : "the mask selects nothing");
  return mask;
}

Lanes LanesOf(const UirLanes& given, const Side* sides, int count, Instruction* instruction) {
  Lanes lanes;
  int64_t widest = 0, narrowest = 8;
  for (int side = 0; side < count; ++side) {
    widest = std::max(widest, sides[side].size);
    narrowest = std::min(narrowest, sides[side].size);
  }
  lanes.per_repeat = std::min<int64_t>(kRepeatBytes / widest, 128);
  if (given.form == kUirCount) {
    if (given.count < 0) instruction->Fault("limit", "count is " + std::to_string(given.count));
    if (given.count <= 0) return lanes;
    lanes.repeats = CeilDiv(given.count, lanes.per_repeat);
    lanes.counted = given.count;
    lanes.runs.push_back({0, 0, given.count, {}});
    return lanes;
  }
  CheckRepeat(given.repeat, instruction);
  bool counts = given.form == kUirRegister && machine.core->mask_counts;
  Mask mask = counts ? Mask{{~uint64_t{0}, ~uint64_t{0}}} : MaskOf(given, lanes.per_repeat, instruction);
  if (instruction->faulty()) return lanes;
  int64_t left = counts ? static_cast<int64_t>(machine.core->mask[0]) : INT64_MAX;
  lanes.repeats = counts ? CeilDiv(left, lanes.per_repeat) : given.repeat;
  lanes.counted = lanes.repeats * lanes.per_repeat;
  int64_t step = kBlockBytes / widest;  // within so many lanes all sides are dense
  if (!counts && mask.HasFirst(lanes.per_repeat)) {
    // all lanes: repeats are dense as a whole where blocks follow each other on all sides
    bool dense = true;
    for (int side = 0; side < count; ++side) dense = dense && sides[side].stride.block == 1;
    if (dense) step = lanes.per_repeat;
  }
  for (int64_t repeat = 0; repeat < lanes.repeats; ++repeat) {
    for (int64_t first = 0; first < lanes.per_repeat && left > 0; first += step) {
      if (step == lanes.per_repeat) {
        AddRun(&lanes, sides, count, repeat, 0, step);
        continue;
      }
      for (int64_t lane = first; lane < first + step && left > 0;) {
        if (!mask.Has(lane)) {
          ++lane;
          continue;
        }
        int64_t end = lane;
        while (end < first + step && mask.Has(end) && left > 0) {
          ++end;
          --left;
        }
        AddRun(&lanes, sides, count, repeat, lane, end - lane);
        lane = end;
      }
    }
  }
  return lanes;
}

}  // namespace uir::ascendc
