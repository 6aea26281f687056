// SPDX-License-Identifier: Apache-2.0
// Attention in one pass over the keys: rows that share their keys are taken together, a block of keys for all of them.

#include "library/attention.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_WIDTHS 1
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "library/attention_units.h"
#include "library/cpu_features.h"
#include "library/half_floats.h"
#include "library/kernel.h"
#include "library/panel_attention.h"
#include "library/parallel.h"
#include "library/quantized_layout.h"
#include "library/tile_attention.h"
#include "library/wide_attention.h"

namespace uir::library {
namespace {

/*! Keys of a block, and rows of a tile, whose sums stay in registers. */
constexpr int kKeys = 64, kTileRows = 6;
/*! Keys and values so far ahead are fetched. */
constexpr int kAhead = 16;
/*! Rows of a task at most, and from which on keys are turned first. */
constexpr int64_t kTaskRows = 192, kTurnedRows = 24;
//! What one more thread must save to pay, in multiply-adds of rows by keys by numbers of a head.
constexpr double kWorthProducts = 150e3;

/*! A few rows and a block of keys and values of their head, and what is summed of them so far. */
struct AttentionTile {
  const AttentionAttrs& attrs;
  DType mask_type;
  const AttentionRow* rows = nullptr;
  const char *keys = nullptr, *values = nullptr;
  const float* turned = nullptr;
  int64_t key_row = 0, value_row = 0;
  float *peaks = nullptr, *totals = nullptr, *sums = nullptr;
};

/*! By the number of rows, less one. */
using Blocks = std::array<void (*)(const AttentionTile&, int64_t first, int64_t count), kTileRows>;

/*! By the type of keys and values. */
using BlocksByType = std::array<Blocks, 3>;

#ifdef UIR_WIDTHS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,f16c")
#define UIR_VECTORS 512
namespace avx512 {
constexpr int kLanes = 16;
#include "library/attention_rows.h"
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#undef UIR_VECTORS
#define UIR_VECTORS 256
namespace avx2 {
constexpr int kLanes = 8;
#include "library/attention_rows.h"
}  // namespace avx2
#pragma GCC pop_options
#undef UIR_VECTORS
#endif
#define UIR_VECTORS 0
namespace any {
constexpr int kLanes = 4;
#include "library/attention_rows.h"
}  // namespace any

const BlocksByType& Best() {
#ifdef UIR_WIDTHS
  if (HasAvx512()) {
    return avx512::kBlocks;
  }
  if (HasHalves()) return avx2::kBlocks;
#endif
  return any::kBlocks;
}

/*! A unit, and its rows. */
struct MadeUnit {
  const char *keys, *values;
  std::vector<AttentionRow> rows;
};

/*! What is summed of some rows over some keys. */
struct Sums {
  std::vector<float> peaks, totals, sums;

  Sums(int64_t rows, int64_t width)
      : peaks(rows, -std::numeric_limits<float>::infinity()), totals(rows), sums(rows * width) {}
};

class Run {
 public:
  Run(const AttentionAttrs& attrs, const AttentionData& data)
      : attrs_(attrs), data_(data), all_(UnitsOf(attrs, data, &queries_)) {}

  void Go(int threads) {
    const int64_t rows = all_.rows();
    if (InFloat32() && TilesPay(attrs_, rows) && RunTiledAttention(attrs_, all_, threads)) return;
    if (PanelsPay(attrs_, rows)) {
      const auto in_panels = [&](const AttentionAttrs& attrs, const AttentionUnits& units) {
        return RunPanelAttention(attrs, units, threads);
      };
      if (InFloat32() ? in_panels(attrs_, all_) : RunWidened(attrs_, data_, all_, threads, in_panels)) return;
    }
    int64_t begin = attrs_.n, end = 0;
    for (const AttentionUnit& unit : all_.units) {
      units_.push_back({unit.keys, unit.values, std::vector<AttentionRow>(rows)});
      all_.MakeRows(unit, {0, rows}, units_.back().rows.data());
      for (const AttentionRow& row : units_.back().rows) {
        begin = std::min(begin, row.begin), end = std::max(end, row.end);
      }
    }
    const int64_t open = std::max<int64_t>(end - begin, 0), chunk = std::min(kTaskRows, RoundUp(rows, kTileRows));
    const double products = static_cast<double>(units_.size()) * static_cast<double>(rows) * static_cast<double>(open) *
                            static_cast<double>(attrs_.d + attrs_.e);
    const int most = static_cast<int>(std::max(1.0, std::min(double(threads), products / kWorthProducts)));
    const auto chunks = CeilDiv(rows, chunk) * static_cast<int64_t>(units_.size());
    if (chunks >= 4 * most || most == 1) return InChunks(chunk, chunks, most);
    InParts(begin, open, most);
  }

 private:
  /*! Whether all but the queries, which are widened, are float32. */
  bool InFloat32() const {
    const DType all[] = {data_.key.type, data_.value.type, data_.mask.type, data_.out.type};
    return std::all_of(std::begin(all), std::end(all), [](DType type) { return type == DType::kF32; });
  }

  /*! The keys of [begin, end) for rows of a unit. */
  void Sum(const MadeUnit& unit, int64_t first_row, int64_t rows, int64_t begin, int64_t end, Sums* sums) const {
    const size_t rank = attrs_.batch.size();
    const int64_t d = attrs_.d, e = attrs_.e, key_row = attrs_.key.strides[rank],
                  value_row = attrs_.value.strides[rank];
    const DType type = data_.key.type;
    const bool turned = rows >= kTurnedRows, widened = turned && type != DType::kF32;
    const Blocks& blocks = blocks_[static_cast<int>(widened ? DType::kF32 : type)];
    AttentionTile tile{attrs_, data_.mask.type};
    tile.key_row = key_row, tile.value_row = widened ? e : value_row;
    float* keys = turned ? reinterpret_cast<float*>(ThreadScratch(0, d * kKeys * sizeof(float))) : nullptr;
    float* wide = widened ? reinterpret_cast<float*>(ThreadScratch(1, (d + e) * kKeys * sizeof(float))) : nullptr;
    for (int64_t first = begin; first < end; first += kKeys) {
      const int64_t count = std::min<int64_t>(kKeys, end - first);
      tile.keys = unit.keys + first * key_row * SizeOf(type),
      tile.values = unit.values + first * value_row * SizeOf(type);
      bool is_turned = false;
      for (int64_t row = 0; row < rows; row += kTileRows) {
        const int64_t some = std::min<int64_t>(kTileRows, rows - row);
        tile.rows = unit.rows.data() + first_row + row;
        const bool reached = std::any_of(tile.rows, tile.rows + some, [&](const AttentionRow& each) {
          return each.begin < first + count && first < each.end;
        });
        if (!reached) continue;
        if (turned && !is_turned) {
          if (widened) Widen(count, wide, &tile);
          Turn(tile.keys, widened ? d : key_row, count, keys);
          is_turned = true;
        }
        tile.turned = keys;
        tile.peaks = sums->peaks.data() + row, tile.totals = sums->totals.data() + row;
        tile.sums = sums->sums.data() + row * e;
        blocks[some - 1](tile, first, count);
      }
    }
  }

  //! Many rows read a block in float32: it is widened once for all of them.
  void Widen(int64_t count, float* wide, AttentionTile* tile) const {
    const size_t rank = attrs_.batch.size();
    const auto size = static_cast<int64_t>(SizeOf(data_.key.type));
    float* values = wide + attrs_.d * kKeys;
    for (int64_t j = 0; j < count; ++j) {
      const char *key = tile->keys + j * attrs_.key.strides[rank] * size,
                 *value = tile->values + j * attrs_.value.strides[rank] * size;
      ToFloats(data_.key.type, key, attrs_.d, wide + j * attrs_.d);
      ToFloats(data_.key.type, value, attrs_.e, values + j * attrs_.e);
    }
    tile->keys = reinterpret_cast<const char*>(wide), tile->values = reinterpret_cast<const char*>(values);
  }

  /*! Keys of float32 as [d, kKeys]. */
  void Turn(const char* keys, int64_t key_row, int64_t count, float* turned) const {
    constexpr int64_t kPiece = 16;
    for (int64_t from = 0; from < attrs_.d; from += kPiece) {
      const int64_t to = std::min(attrs_.d, from + kPiece);
      for (int64_t j = 0; j < count; ++j) {
        const float* key = reinterpret_cast<const float*>(keys) + j * key_row;
        for (int64_t at = from; at < to; ++at) turned[at * kKeys + j] = key[at];
      }
      for (int64_t at = from; at < to; ++at) std::fill(turned + at * kKeys + count, turned + (at + 1) * kKeys, 0.0f);
    }
  }

  /*! A row's sums over their total; of no open key zeros where the attention is safe, else NaN. */
  void Store(const AttentionRow& row, float total, const float* sums) const {
    const float inverse = total == 0.0f && attrs_.safe ? 0.0f : 1.0f / total;
    FromFloats(data_.out.type, sums, inverse, attrs_.e, row.out);
  }

  /*! Each task has rows of its own, and walks all their keys. */
  void InChunks(int64_t chunk, int64_t chunks, int tasks) const {
    ParallelRun(tasks, [&](int task) {
      for (int64_t number = chunks - 1 - task; number >= 0; number -= tasks) {  // the longest rows first
        const int64_t of_unit = chunks / static_cast<int64_t>(units_.size()), row = number % of_unit * chunk;
        const MadeUnit& unit = units_[number / of_unit];
        const int64_t rows = std::min(chunk, static_cast<int64_t>(unit.rows.size()) - row);
        int64_t begin = attrs_.n, end = 0;
        for (int64_t r = row; r < row + rows; ++r) {
          begin = std::min(begin, unit.rows[r].begin), end = std::max(end, unit.rows[r].end);
        }
        Sums sums(rows, attrs_.e);
        Sum(unit, row, rows, begin, end, &sums);
        for (int64_t r = 0; r < rows; ++r) Store(unit.rows[row + r], sums.totals[r], sums.sums.data() + r * attrs_.e);
      }
    });
  }

  /*! Few rows: each task has a part of the keys, of all heads; their sums are joined. */
  void InParts(int64_t begin, int64_t open, int tasks) const {
    const auto rows = static_cast<int64_t>(units_[0].rows.size());
    std::vector<std::vector<Sums>> parts(tasks);
    ParallelRun(tasks, [&](int task) {
      const Range keys = Part(open, kKeys, tasks, task);
      for (const MadeUnit& unit : units_) {
        parts[task].emplace_back(rows, attrs_.e);
        Sum(unit, 0, rows, begin + keys.begin, begin + keys.begin + keys.size, &parts[task].back());
      }
    });
    for (size_t number = 0; number < units_.size(); ++number) {
      Sums& first = parts[0][number];
      for (int64_t r = 0; r < rows; ++r) {
        for (int task = 1; task < tasks; ++task) Join(parts[task][number], r, &first);
        Store(units_[number].rows[r], first.totals[r], first.sums.data() + r * attrs_.e);
      }
    }
  }

  void Join(const Sums& part, int64_t row, Sums* into) const {
    const float lowest = -std::numeric_limits<float>::infinity();
    const float a = into->peaks[row], b = part.peaks[row], peak = std::max(a, b);
    const float left = a == lowest ? 0.0f : std::exp(a - peak), right = b == lowest ? 0.0f : std::exp(b - peak);
    into->peaks[row] = peak;
    into->totals[row] = into->totals[row] * left + part.totals[row] * right;
    for (int64_t at = row * attrs_.e; at < (row + 1) * attrs_.e; ++at) {
      into->sums[at] = into->sums[at] * left + part.sums[at] * right;
    }
  }

  const AttentionAttrs& attrs_;
  const AttentionData& data_;
  const BlocksByType& blocks_ = Best();
  std::vector<float> queries_;  // widened
  AttentionUnits all_;
  std::vector<MadeUnit> units_;
};

}  // namespace

void RunAttention(const AttentionAttrs& attrs, const AttentionData& data, int threads) { Run(attrs, data).Go(threads); }

}  // namespace uir::library
