// SPDX-License-Identifier: Apache-2.0
// Rows of units in tiles for vectors of kLanes floats. No guard: panel_attention.cc includes this in a namespace and
// for instructions of its own; UIR_VECTORS has the bits of a vector.

#include "library/vector_math.h"
// behind what they need
#include "library/spread.h"
#include "library/transpose_tile.h"
UIR_INLINE void Transpose(Vector (&rows)[kLanes]) { TransposeSquare<1>(rows); }
#include "library/add_products.h"
#include "library/attention_tile.h"
#include "library/pack_rows.h"
#include "library/panel_power.h"
//
#include "library/panel_attention_tile.h"

/*! Some rows of a unit, walked tile by tile, or, of more keys than a block, block by block. */
class RowsOfUnit {
 public:
  RowsOfUnit(const Frame& frame, const AttentionPart& part)
      : frame_(frame), unit_(part.unit), first_(part.rows), rows_(part.count) {
    begin_ = frame.attrs.n;
    for (int64_t r = 0; r < rows_; ++r) {
      begin_ = std::min(begin_, first_[r].begin), end_ = std::max(end_, first_[r].end);
    }
    blocks_ = std::max<int64_t>(1, CeilDiv(end_ - begin_, frame.block_keys));
    if (part.next && blocks_ == 1) {
      ahead_.keys = KeysAhead(part.next->keys, frame.key_row, frame.attrs.d);
      ahead_.values = KeysAhead(part.next->values, frame.value_row, frame.attrs.e);
    }
  }

  /*! False where a number is none, or very large. */
  bool Go() {
    const int64_t d = frame_.attrs.d, e = frame_.attrs.e, tiles = CeilDiv<int64_t>(rows_, kQueries);
    const int64_t query_floats = d * kQueries, tile_floats = query_floats + StateFloats(frame_.numbers);
    const int64_t kept = blocks_ == 1 ? 1 : tiles;  // of one block a tile is done before the next begins
    const int64_t all = kKeysAtOnce * kQueries + kept * tile_floats + frame_.block_keys * (d + e);
    scores_ = reinterpret_cast<float*>(ThreadScratch(0, all * sizeof(float)));
    float* const room = scores_ + kKeysAtOnce * kQueries;
    keys_ = room + kept * tile_floats;
    near_ = keys_ + frame_.block_keys * d;
    std::vector<Rows> made(tiles);
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t begin = begin_ + block * frame_.block_keys;
      const int64_t size = std::max<int64_t>(0, std::min(frame_.block_keys, end_ - begin));
      if (!Bring(begin, size)) return false;
      for (int64_t at = 0; at < tiles; ++at) {
        Rows& rows = made[at];
        if (block == 0) {
          float* queries = room + (kept == 1 ? 0 : at) * tile_floats;
          rows = MakeRows(at * kQueries, queries, queries + query_floats);
          if (!(rows.square < kSquareLimit)) return false;
        }
        Attend(rows, begin, size);
        if (block + 1 < blocks_) continue;
        if (!AreNumbers(rows.tile, e)) return false;
        StoreRows(rows.tile, e, frame_.attrs.safe);
      }
    }
    return true;
  }

 private:
  static constexpr int64_t kFloat = sizeof(float);

  /*! Keys or values of another unit, those that are read of this one. */
  FetchAhead KeysAhead(const char* first, int64_t row, int64_t numbers) const {
    return {first + begin_ * row * kFloat, row * kFloat, numbers * kFloat, end_ - begin_};
  }

  /*! A block of keys, and their values; false where a key's number is none, or very large. */
  bool Bring(int64_t begin, int64_t size) {
    const int64_t key_row = frame_.key_row;
    PackKeys({reinterpret_cast<const float*>(unit_.keys) + begin * key_row, key_row}, size, frame_.attrs.d, keys_,
             &squares_);
    const float* const values = reinterpret_cast<const float*>(unit_.values) + begin * frame_.value_row;
    if (kLaysOutValues) {
      PackValues(frame_, values, size, near_);
      values_ = {near_, frame_.attrs.e};
    } else {
      values_ = ValuesNear(frame_, values, size, near_);
    }
    // of all keys so far: rows that needed the greatest score taken off go on so
    longest_ = squares_.Largest();
    return longest_ < kSquareLimit;
  }

  Rows MakeRows(int64_t at, float* queries, float* state) {
    Rows rows;
    rows.tile = MakeTile(first_ + at, static_cast<int>(std::min<int64_t>(kQueries, rows_ - at)), frame_.numbers, state);
    rows.tile.queries = reinterpret_cast<const char*>(queries);
    rows.square = PackQueries(frame_, rows.tile, queries);
    const int64_t next = at + kQueries;
    if (next + 1 < rows_) {
      const float* const first = first_[next].query;
      ahead_.queries = FetchAhead(first, (first_[next + 1].query - first) * kFloat, frame_.attrs.d * kFloat,
                                  std::min<int64_t>(kQueries, rows_ - next));
    }
    if (rows.tile.begin >= rows.tile.end) std::fill_n(state, frame_.numbers * kQueries, 0.0f);
    return rows;
  }

  /*! The keys of a block for some rows. */
  void Attend(const Rows& rows, int64_t begin, int64_t size) {
    const Tile& tile = rows.tile;
    const bool bounded = !frame_.attrs.masked && rows.square * longest_ <= kMostBounded * kMostBounded;
    for (int v = 0; v < kVectors; ++v) {
      // of a row that had no key so far no score is the greatest
      const Vector lowest = Vector{} + std::numeric_limits<float>::lowest();
      tile.peaks[v] = bounded ? Vector{} : tile.totals[v] == 0.0f ? lowest : tile.peaks[v];
    }
    for (int64_t first = begin; first < begin + size; first += kKeysAtOnce) {
      if (first + kKeysAtOnce <= tile.begin || tile.end <= first) continue;
      const int64_t some = std::min<int64_t>(kKeysAtOnce, begin + size - first), before = first - begin;
      AttendKeys(frame_, rows, bounded, first, some, keys_ + before * frame_.attrs.d,
                 {values_.at + before * values_.row, values_.row}, scores_, &ahead_);
    }
  }

  const Frame& frame_;
  const AttentionUnit& unit_;
  const AttentionRow* first_;
  int64_t rows_, begin_ = 0, end_ = 0, blocks_ = 1;
  float *scores_ = nullptr, *keys_ = nullptr, *near_ = nullptr;
  Lines values_{};
  Ahead ahead_;
  Spread squares_;
  float longest_ = 0.0f;
};

/*! All units. */
inline bool RunRows(const AttentionAttrs& attrs, const AttentionUnits& units, int threads) {
  const Frame frame(attrs);
  return RunParts(units, kQueries, threads, [&](const AttentionPart& part) { return RowsOfUnit(frame, part).Go(); });
}
