// SPDX-License-Identifier: Apache-2.0
#include "library/attention_parts.h"

#include <algorithm>
#include <atomic>

namespace uir::library {
namespace {

/*! Rows of a part at least where a unit is cut: each part lays out the keys again. */
constexpr int64_t kPartRows = 128;

}  // namespace

bool RunParts(const std::vector<AttentionUnit>& units, int64_t granule, int threads,
              const std::function<bool(const AttentionUnit&, const Range& rows)>& attend) {
  const auto count = static_cast<int64_t>(units.size()), rows = static_cast<int64_t>(units[0].rows.size());
  // units are dealt whole where they come out even, or nearly
  int64_t parts = 1;
  while (count * parts % threads != 0 && count * parts < 8 * threads && rows / (parts + 1) >= kPartRows) ++parts;
  const int tasks = static_cast<int>(std::min<int64_t>(threads, count * parts));
  std::atomic<int64_t> next{count * parts};
  std::atomic<bool> all{true};
  ParallelRun(tasks, [&](int) {
    // the last first: under a causal band they are the longest
    for (int64_t number = --next; number >= 0 && all; number = --next) {
      const Range part = Part(rows, granule, static_cast<int>(parts), static_cast<int>(number / count));
      if (part.size > 0 && !attend(units[number % count], part)) all = false;
    }
  });
  return all;
}

}  // namespace uir::library
