// SPDX-License-Identifier: Apache-2.0
#include "library/wide_attention.h"

#include <algorithm>
#include <unordered_map>

#include "library/half_floats.h"
#include "library/kernel.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Scratch of the caller, beside what attention takes. */
constexpr int kSlot = 2;
/*! Numbers from which on threads share them. */
constexpr int64_t kShared = 1 << 16;

/*! Numbers of a type, and where they are in float32. */
struct Stretch {
  const char* from;
  float* to;
};

/*! body(at) of `count` stretches of so many numbers, on threads where that pays. */
template <typename Body>
void Share(int64_t count, int64_t numbers, int threads, const Body& body) {
  const int tasks = static_cast<int>(count * numbers < kShared ? 1 : std::min<int64_t>(threads, count));
  ParallelRun(tasks, [&](int task) {
    const Range part = Part(count, 1, tasks, task);
    for (int64_t at = part.begin; at < part.begin + part.size; ++at) body(at);
  });
}

void Widen(DType type, const std::vector<Stretch>& all, int64_t numbers, int threads) {
  Share(static_cast<int64_t>(all.size()), numbers, threads,
        [&](int64_t at) { ToFloats(type, all[at].from, numbers, all[at].to); });
}

}  // namespace

bool RunWidened(const AttentionAttrs& attrs, const AttentionData& data, std::vector<AttentionUnit> units, int threads,
                const Float32Attention& run) {
  const size_t rank = attrs.batch.size();
  const bool keys_narrow = data.key.type != DType::kF32, out_narrow = data.out.type != DType::kF32,
             mask_narrow = attrs.masked && data.mask.type != DType::kF32;
  int64_t begin = attrs.n, end = 0, rows = 0;
  std::unordered_map<const char*, int64_t> masks;  // their numbers
  for (const AttentionUnit& unit : units) {
    rows += static_cast<int64_t>(unit.rows.size());
    for (const AttentionRow& row : unit.rows) {
      begin = std::min(begin, row.begin), end = std::max(end, row.end);
      if (mask_narrow) masks.emplace(row.mask, static_cast<int64_t>(masks.size()));
    }
  }
  begin = std::min(begin, end);
  // [unit][key, number], [unit][value, number], [mask][key], [row, number]; keys are those up to the last that is seen
  const int64_t d = attrs.d, e = attrs.e, open = end - begin, all = static_cast<int64_t>(units.size());
  const int64_t keys_at = 0, values_at = keys_at + (keys_narrow ? all * end * d : 0),
                masks_at = values_at + (keys_narrow ? all * end * e : 0),
                results_at = masks_at + static_cast<int64_t>(masks.size()) * end,
                floats = results_at + (out_narrow ? rows * e : 0);
  auto* const wide = reinterpret_cast<float*>(ThreadScratch(kSlot, floats * sizeof(float)));
  AttentionAttrs wide_attrs = attrs;
  if (keys_narrow) {
    const auto size = static_cast<int64_t>(SizeOf(data.key.type));
    const int64_t key_row = attrs.key.strides[rank] * size, value_row = attrs.value.strides[rank] * size;
    wide_attrs.key.strides[rank] = d, wide_attrs.value.strides[rank] = e;
    std::vector<Stretch> keys, values;
    for (int64_t number = 0; number < all; ++number) {
      AttentionUnit& unit = units[number];
      float *key = wide + keys_at + number * end * d, *value = wide + values_at + number * end * e;
      for (int64_t j = begin; j < end; ++j) {
        keys.push_back({unit.keys + j * key_row, key + j * d});
        values.push_back({unit.values + j * value_row, value + j * e});
      }
      unit.keys = reinterpret_cast<const char*>(key), unit.values = reinterpret_cast<const char*>(value);
    }
    Widen(data.key.type, keys, d, threads);
    Widen(data.key.type, values, e, threads);
  }
  std::vector<Stretch> added;
  for (const auto& [mask, number] : masks) {
    added.push_back(
        {mask + begin * static_cast<int64_t>(SizeOf(data.mask.type)), wide + masks_at + number * end + begin});
  }
  if (mask_narrow) Widen(data.mask.type, added, open, threads);
  std::vector<char*> results;
  for (AttentionUnit& unit : units) {
    for (AttentionRow& row : unit.rows) {
      if (mask_narrow) row.mask = reinterpret_cast<const char*>(wide + masks_at + masks.at(row.mask) * end);
      if (!out_narrow) continue;
      const auto number = static_cast<int64_t>(results.size());
      results.push_back(row.out);
      row.out = reinterpret_cast<char*>(wide + results_at + number * e);
    }
  }
  if (!run(wide_attrs, units)) return false;
  Share(static_cast<int64_t>(results.size()), e, threads,
        [&](int64_t at) { FromFloats(data.out.type, wide + results_at + at * e, 1.0f, e, results[at]); });
  return true;
}

}  // namespace uir::library
