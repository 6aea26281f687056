// SPDX-License-Identifier: Apache-2.0
#include "library/attention_parts.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace uir::library {
namespace {

/*! Rows of a part at least where a unit is cut: each part lays out the keys again. */
constexpr int64_t kPartRows = 128;

}  // namespace

bool RunParts(const AttentionUnits& all, int64_t granule, int threads, const AttendPart& attend) {
  const int64_t count = static_cast<int64_t>(all.units.size()), rows = all.rows();
  // units are dealt whole where they come out even, or nearly
  int64_t parts = 1;
  while (count * parts % threads != 0 && count * parts < 8 * threads && rows / (parts + 1) >= kPartRows) ++parts;
  const int tasks = static_cast<int>(std::min<int64_t>(threads, count * parts));
  std::atomic<int64_t> next{count * parts};
  std::atomic<bool> whole{true};
  ParallelRun(tasks, [&](int) {
    thread_local std::vector<AttentionRow> made;  // whose memory stays
    // the last first: under a causal band they are the longest
    for (int64_t number = --next; number >= 0 && whole;) {
      // one is taken ahead while others have enough
      const int64_t following = next > tasks ? --next : -1;
      const Range part = Part(rows, granule, static_cast<int>(parts), static_cast<int>(number / count));
      const AttentionUnit& unit = all.units[number % count];
      if (part.size > 0) {
        if (static_cast<int64_t>(made.size()) < part.size) made.resize(part.size);
        all.MakeRows(unit, part, made.data());
        const AttentionUnit* const then = following < 0 ? nullptr : &all.units[following % count];
        if (!attend({unit, made.data(), part.size, then})) whole = false;
      }
      number = following < 0 ? --next : following;
    }
  });
  return whole;
}

}  // namespace uir::library
