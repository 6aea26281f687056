// SPDX-License-Identifier: Apache-2.0
#include "library/wide_attention.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

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

bool RunWidened(const AttentionAttrs& attrs, const AttentionData& data, AttentionUnits units, int threads,
                const Float32Attention& run) {
  const size_t rank = attrs.batch.size();
  const bool keys_narrow = data.key.type != DType::kF32, out_narrow = data.out.type != DType::kF32,
             mask_narrow = attrs.masked && data.mask.type != DType::kF32;
  const int64_t rows = units.rows(), mask_rows = units.mask_step == 0 ? 1 : units.head_rows;
  int64_t begin = attrs.n, end = 0;
  std::unordered_map<const char*, int64_t> masks;  // of heads, and their numbers
  std::vector<AttentionRow> made(rows);
  for (const AttentionUnit& unit : units.units) {
    units.MakeRows(unit, {0, rows}, made.data());
    for (const AttentionRow& row : made) begin = std::min(begin, row.begin), end = std::max(end, row.end);
    for (const AttentionHead& head : unit.heads) {
      if (mask_narrow) masks.emplace(head.mask, static_cast<int64_t>(masks.size()));
    }
  }
  begin = std::min(begin, end);
  // [unit][key, number], [unit][value, number], [mask][row, key], [row, number]; keys are those up to the last that is
  // seen
  const int64_t d = attrs.d, e = attrs.e, open = end - begin, all = static_cast<int64_t>(units.units.size());
  const int64_t keys_at = 0, values_at = keys_at + (keys_narrow ? all * end * d : 0),
                masks_at = values_at + (keys_narrow ? all * end * e : 0),
                results_at = masks_at + static_cast<int64_t>(masks.size()) * mask_rows * end,
                floats = results_at + (out_narrow ? all * rows * e : 0);
  auto* const wide = reinterpret_cast<float*>(ThreadScratch(kSlot, floats * sizeof(float)));
  AttentionAttrs wide_attrs = attrs;
  if (keys_narrow) {
    const auto size = static_cast<int64_t>(SizeOf(data.key.type));
    const int64_t key_row = attrs.key.strides[rank] * size, value_row = attrs.value.strides[rank] * size;
    wide_attrs.key.strides[rank] = d, wide_attrs.value.strides[rank] = e;
    std::vector<Stretch> keys, values;
    for (int64_t number = 0; number < all; ++number) {
      AttentionUnit& unit = units.units[number];
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
  const int64_t mask_step = units.mask_step, out_step = units.out_step;
  if (mask_narrow) {
    std::vector<Stretch> added;
    for (const auto& [mask, number] : masks) {
      const char* from = mask + begin * static_cast<int64_t>(SizeOf(data.mask.type));
      float* to = wide + masks_at + number * mask_rows * end + begin;
      for (int64_t row = 0; row < mask_rows; ++row) added.push_back({from + row * mask_step, to + row * end});
    }
    Widen(data.mask.type, added, open, threads);
    units.mask_step = mask_step == 0 ? 0 : end * static_cast<int64_t>(sizeof(float));
  }
  if (out_narrow) units.out_step = e * static_cast<int64_t>(sizeof(float));
  std::vector<char*> results;
  for (AttentionUnit& unit : units.units) {
    for (AttentionHead& head : unit.heads) {
      if (mask_narrow) {
        head.mask = reinterpret_cast<const char*>(wide + masks_at + masks.at(head.mask) * mask_rows * end);
      }
      if (!out_narrow) continue;
      char* const out = head.out;
      head.out = reinterpret_cast<char*>(wide + results_at + static_cast<int64_t>(results.size()) * e);
      for (int64_t row = 0; row < units.head_rows; ++row) results.push_back(out + row * out_step);
    }
  }
  if (!run(wide_attrs, units)) return false;
  Share(static_cast<int64_t>(results.size()), e, threads,
        [&](int64_t at) { FromFloats(data.out.type, wide + results_at + at * e, 1.0f, e, results[at]); });
  return true;
}

}  // namespace uir::library
