// SPDX-License-Identifier: Apache-2.0
#include "device/simt/warp_trace.h"

#include <algorithm>

namespace uir::simt {

namespace {

/*! \brief Lanes that a pass of shared memory serves: 32 banks of 4 bytes are 128 bytes. */
uint32_t LanesOfPass(uint32_t bytes) { return bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8; }

/*! \brief Neighbouring lanes at neighbouring bytes meet no conflict. */
BankPasses PassesOfRow(uint32_t lanes, uint32_t bytes) {
  uint32_t group = LanesOfPass(bytes);
  int passes = 0;
  for (uint32_t first = 0; first < 32; first += group) {
    uint32_t mask = group == 32 ? lanes : lanes >> first & ((1u << group) - 1);
    passes += mask != 0;
  }
  return {passes, passes};
}

Sectors SectorsOfRow(uint32_t lanes, const uint64_t* address, uint32_t bytes) {
  uint32_t first = static_cast<uint32_t>(__builtin_ctz(lanes));
  uint64_t begin = address[first], count = uint64_t{bytes} * static_cast<uint64_t>(__builtin_popcount(lanes));
  return {static_cast<int>((begin + count - 1) / 32 - begin / 32 + 1), static_cast<int>((count + 31) / 32)};
}

}  // namespace

void WarpTrace::Reset(size_t code_bytes) {
  index_.assign(code_bytes, 0);
  sites_.assign(1, Site());
  touched_.clear();
}

bool WarpTrace::Note(uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool shared) {
  uint32_t& index = index_[site];
  if (index == 0) {
    index = static_cast<uint32_t>(sites_.size());
    sites_.emplace_back();
  }
  Site& at = sites_[index];
  if (!at.touched) {
    at.touched = true;
    touched_.push_back(index);
    at.bytes = bytes;
    at.shared = shared;
  }
  uint32_t number = at.count[lane]++;
  if (number >= at.accesses.size()) at.accesses.resize(number + 1);
  Access& access = at.accesses[number];
  if (access.lanes == 0) {
    access.contiguous = true;
  } else {
    access.contiguous = access.contiguous && lane == access.last + 1 && address == access.address[access.last] + bytes;
  }
  access.last = lane;
  access.lanes |= 1u << lane;
  access.address[lane] = address;
  return number + 1 < kAhead;
}

void WarpTrace::Flush(Counters* counters) {
  for (uint32_t index : touched_) {
    Site& site = sites_[index];
    for (Access& access : site.accesses) {
      if (!access.lanes) break;
      if (site.shared) {
        BankPasses found = access.contiguous ? PassesOfRow(access.lanes, site.bytes)
                                             : CountBankPasses(access.lanes, access.address, site.bytes);
        (*counters)[kSharedWarpAccesses] += 1;
        (*counters)[kSharedPasses] += found.passes;
        (*counters)[kBankConflicts] += found.passes - found.ideal;
      } else {
        Sectors found = access.contiguous ? SectorsOfRow(access.lanes, access.address, site.bytes)
                                          : CountSectors(access.lanes, access.address, site.bytes);
        (*counters)[kGlobalWarpAccesses] += 1;
        (*counters)[kGlobalSectors] += found.touched;
        (*counters)[kGlobalSectorsIdeal] += found.ideal;
        (*counters)[kGlobalUncoalesced] += found.touched > found.ideal;
      }
      access.lanes = 0;
    }
    std::fill(std::begin(site.count), std::end(site.count), 0);
    site.touched = false;
  }
  touched_.clear();
}

BankPasses CountBankPasses(uint32_t lanes, const uint64_t* address, uint32_t bytes) {
  uint32_t group = LanesOfPass(bytes);
  BankPasses result{0, 0};
  for (uint32_t first = 0; first < 32; first += group) {
    uint64_t words[64];
    uint32_t count = 0;
    for (uint32_t lane = first; lane < first + group; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      uint64_t begin = address[lane] / 4, end = (address[lane] + std::min(bytes, 16u) - 1) / 4;
      for (uint64_t word = begin; word <= end && count < 64; ++word) words[count++] = word;
    }
    if (!count) continue;
    std::sort(words, words + count);
    count = static_cast<uint32_t>(std::unique(words, words + count) - words);
    int in_bank[32] = {};
    int most = 0;
    for (uint32_t i = 0; i < count; ++i) most = std::max(most, ++in_bank[words[i] % 32]);
    result.passes += most;
    result.ideal += 1;
  }
  return result;
}

Sectors CountSectors(uint32_t lanes, const uint64_t* address, uint32_t bytes) {
  // Pieces of at most one sector each; an access of 16 bytes that is aligned lies in one.
  std::pair<uint64_t, uint32_t> pieces[96];
  uint32_t count = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    for (uint64_t at = address[lane], end = at + bytes; at < end && count < 96;) {
      uint64_t stop = std::min(end, (at / 32 + 1) * 32);
      uint32_t mask = stop - at >= 32 ? 0xffffffffu : ((1u << (stop - at)) - 1) << (at % 32);
      if (count && pieces[count - 1].first == at / 32) {
        pieces[count - 1].second |= mask;
      } else {
        pieces[count++] = {at / 32, mask};
      }
      at = stop;
    }
  }
  std::sort(pieces, pieces + count);
  Sectors result{0, 0};
  int distinct = 0;
  for (uint32_t i = 0; i < count;) {
    uint32_t mask = 0, j = i;
    for (; j < count && pieces[j].first == pieces[i].first; ++j) mask |= pieces[j].second;
    distinct += __builtin_popcount(mask);
    ++result.touched;
    i = j;
  }
  result.ideal = (distinct + 31) / 32;
  return result;
}

}  // namespace uir::simt
