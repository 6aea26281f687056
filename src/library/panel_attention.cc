// SPDX-License-Identifier: Apache-2.0
#include "library/panel_attention.h"

#include "library/panel_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_PANELS 1
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "base/rounding.h"
#include "library/attention_parts.h"
#include "library/conv2d_tile_kernels.h"
#include "library/kernel.h"

namespace uir::library {

#ifdef UIR_PANELS
namespace {

//! Keys of a tile of scores: of sums of one head's length, four rows by two vectors take 99 % of what a core multiplies
//! and adds, six rows 94; keys whose scores are computed at a time; bytes of keys and values that stay in the second
//! cache; keys whose values are laid out at a time; numbers of a value in a tile, at most.
constexpr int kKeyRows = 4, kKeysAtOnce = 256, kKeysLaidOut = 32, kMostValues = 6;
constexpr int64_t kBlockBytes = 256 << 10;
/*! Below which squares of lengths, and values, are, so that scores, and sums of values, are numbers. */
constexpr float kSquareLimit = 0x1p110f, kValueLimit = 0x1p55f;
//! Exponents of two that need no maximum taken off: weights, their sums, and products with values are normal numbers.
constexpr float kMostBounded = 32.0f;
/*! Rows and keys from which on panels pay. */
constexpr int64_t kLeastRows = 32, kLeastKeys = 16;

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8, kVectors = 2;
#include "library/vector_math.h"
// behind what they need
#include "library/spread.h"
#include "library/transpose_tile.h"
UIR_INLINE void Transpose(Vector (&rows)[kLanes]) { TransposeSquare<1>(rows); }
#include "library/attention_tile.h"
#include "library/panel_attention_tile.h"

/*! Some rows of a unit, walked tile by tile, or, of more keys than a block, block by block. */
class RowsOfUnit {
 public:
  RowsOfUnit(const Frame& frame, const AttentionUnit& unit, const Range& rows)
      : frame_(frame), unit_(unit), first_(unit.rows.data() + rows.begin), rows_(rows.size) {
    begin_ = frame.attrs.n;
    for (int64_t r = 0; r < rows_; ++r) {
      begin_ = std::min(begin_, first_[r].begin), end_ = std::max(end_, first_[r].end);
    }
    blocks_ = std::max<int64_t>(1, CeilDiv(end_ - begin_, frame.block_keys));
  }

  /*! False where a number is none, or very large. */
  bool Go() {
    const int64_t d = frame_.attrs.d, e = frame_.attrs.e, tiles = CeilDiv<int64_t>(rows_, kQueries);
    const int64_t query_floats = d * kQueries, tile_floats = query_floats + StateFloats(frame_.numbers);
    const int64_t kept = blocks_ == 1 ? 1 : tiles;  // of one block a tile is done before the next begins
    const int64_t all = kKeysAtOnce * kQueries + frame_.block_keys * (d + e) + kept * tile_floats;
    scores_ = reinterpret_cast<float*>(ThreadScratch(0, all * sizeof(float)));
    keys_ = scores_ + kKeysAtOnce * kQueries;
    values_ = keys_ + frame_.block_keys * d;
    float* const room = values_ + frame_.block_keys * e;
    std::vector<Rows> made(tiles);
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t begin = begin_ + block * frame_.block_keys;
      const int64_t size = std::max<int64_t>(0, std::min(frame_.block_keys, end_ - begin));
      if (!LayOut(begin, size)) return false;
      for (int64_t at = 0; at < tiles; ++at) {
        Rows& rows = made[at];
        if (block == 0) {
          float* queries = room + (kept == 1 ? 0 : at) * tile_floats;
          rows = MakeRows(at * kQueries, queries, queries + query_floats);
          if (!(rows.square < kSquareLimit)) return false;
        }
        Attend(rows, begin, size);
        if (block + 1 == blocks_) StoreRows(rows.tile, e, frame_.attrs.safe);
      }
    }
    return true;
  }

 private:
  /*! A block of keys, and their values; false where a number is none, or very large. */
  bool LayOut(int64_t begin, int64_t size) {
    PackKeys(frame_, reinterpret_cast<const float*>(unit_.keys) + begin * frame_.key_row, size, keys_, &squares_);
    PackValues(frame_, reinterpret_cast<const float*>(unit_.values) + begin * frame_.value_row, size, values_,
               &values_spread_);
    // of all keys so far: rows that needed the greatest score taken off go on so
    longest_ = squares_.Largest();
    return longest_ < kSquareLimit && values_spread_.Largest() < kValueLimit;
  }

  Rows MakeRows(int64_t at, float* queries, float* state) const {
    Rows rows;
    rows.tile = MakeTile(first_ + at, static_cast<int>(std::min<int64_t>(kQueries, rows_ - at)), frame_.numbers, state);
    rows.tile.queries = reinterpret_cast<const char*>(queries);
    rows.square = PackQueries(frame_, rows.tile, queries);
    const int64_t next = at + kQueries;
    if (next < rows_) FetchQueries(frame_, first_ + next, std::min<int64_t>(kQueries, rows_ - next));
    if (rows.tile.begin >= rows.tile.end) std::fill_n(state, frame_.numbers * kQueries, 0.0f);
    return rows;
  }

  /*! The keys of a block for some rows. */
  void Attend(const Rows& rows, int64_t begin, int64_t size) const {
    const Tile& tile = rows.tile;
    const bool bounded = !frame_.attrs.masked && rows.square * longest_ <= kMostBounded * kMostBounded;
    for (int v = 0; v < kVectors; ++v) {
      // of a row that had no key so far no score is the greatest
      const Vector lowest = Vector{} + std::numeric_limits<float>::lowest();
      tile.peaks[v] = bounded ? Vector{} : tile.totals[v] == 0.0f ? lowest : tile.peaks[v];
    }
    for (int64_t first = begin; first < begin + size; first += kKeysAtOnce) {
      if (first + kKeysAtOnce <= tile.begin || tile.end <= first) continue;
      const int64_t laid_out = std::min<int64_t>(kKeysAtOnce, begin + size - first);
      AttendKeys(frame_, rows, bounded, first, laid_out, keys_ + (first - begin) * frame_.attrs.d,
                 values_ + (first - begin) * frame_.attrs.e, scores_);
    }
  }

  const Frame& frame_;
  const AttentionUnit& unit_;
  const AttentionRow* first_;
  int64_t rows_, begin_ = 0, end_ = 0, blocks_ = 1;
  float *scores_ = nullptr, *keys_ = nullptr, *values_ = nullptr;
  Spread squares_, values_spread_;
  float longest_ = 0.0f;
};
}  // namespace avx2
#pragma GCC pop_options

}  // namespace

bool PanelsPay(const AttentionAttrs& attrs, int64_t rows) {
  return rows >= kLeastRows && attrs.n >= kLeastKeys && attrs.d > 0 && attrs.e > 0 &&
         attrs.n < std::numeric_limits<int32_t>::max() - kKeysAtOnce && PanelKernelsOfEight();
}

bool RunPanelAttention(const AttentionAttrs& attrs, const std::vector<AttentionUnit>& units, int threads) {
  const avx2::Frame frame(attrs, *PanelKernelsOfEight());
  return RunParts(units, avx2::kQueries, threads, [&](const AttentionUnit& unit, const Range& rows) {
    return avx2::RowsOfUnit(frame, unit, rows).Go();
  });
}
#else
bool PanelsPay(const AttentionAttrs&, int64_t) { return false; }
bool RunPanelAttention(const AttentionAttrs&, const std::vector<AttentionUnit>&, int) { return false; }
#endif

}  // namespace uir::library
