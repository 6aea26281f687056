// SPDX-License-Identifier: Apache-2.0
// Rows of queries whose scores lie with the queries along vectors. No guard: it is included behind vector_math.h and a
// `Transpose` of kLanes vectors, in a namespace and for instructions of its own; a tile has kVectors vectors of
// queries.

typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t)), aligned(4)));

/*! Queries of a tile. */
constexpr int kQueries = kVectors * kLanes;

/*! Up to kQueries rows, and what is summed of them so far: sums are [number of a value][query]. */
struct Tile {
  const AttentionRow* rows;
  int count;
  int64_t begin, end;                       // keys that some row sees
  int64_t all_from, all_to;                 // keys that all rows see
  int32_t first[kQueries], last[kQueries];  // of each row
  const char* queries;
  Vector *peaks, *totals;
  float* sums;
};

/*! Floats of a tile's sums, totals and greatest scores, for values of so many numbers. */
constexpr int64_t StateFloats(int64_t numbers) { return (numbers + 2) * kQueries; }

/*! A tile that has summed nothing, in memory for its state; sums are left as they are there. */
inline Tile MakeTile(const AttentionRow* rows, int count, int64_t numbers, float* state) {
  Tile tile = {};
  tile.rows = rows, tile.count = count;
  tile.begin = tile.all_to = std::numeric_limits<int32_t>::max();
  for (int r = 0; r < count; ++r) {
    tile.first[r] = static_cast<int32_t>(rows[r].begin);
    tile.last[r] = static_cast<int32_t>(rows[r].end);
    tile.begin = std::min(tile.begin, rows[r].begin), tile.end = std::max(tile.end, rows[r].end);
    tile.all_from = std::max(tile.all_from, rows[r].begin), tile.all_to = std::min(tile.all_to, rows[r].end);
  }
  tile.sums = state;
  tile.totals = reinterpret_cast<Vector*>(state + numbers * kQueries);
  tile.peaks = tile.totals + kVectors;
  // the lowest number and not -inf, so that keys that are closed to a row add nothing: exp(-inf - lowest) = 0
  for (int v = 0; v < kVectors; ++v) {
    tile.totals[v] = Vector{};
    tile.peaks[v] = Vector{} + std::numeric_limits<float>::lowest();
  }
  return tile;
}

/*! Rows of a tile that lie in one of its vectors. */
UIR_INLINE int RowsIn(const Tile& tile, int v) { return std::clamp(tile.count - v * kLanes, 0, kLanes); }

/*! Numbers [at, at + kLanes) of up to kLanes rows; zeros beyond `rows` and `columns`. */
UIR_INLINE void LoadRows(const float* const* from, int rows, int64_t at, int64_t columns, Vector (&to)[kLanes]) {
  for (int r = 0; r < kLanes; ++r) {
    to[r] = Vector{};
    if (r < rows && at < columns) Get(to[r], from[r] + at, columns - at);
  }
}

/*! What is added to a row's scores, and where its result goes. */
inline const float* Mask(const AttentionRow& row) { return reinterpret_cast<const float*>(row.mask); }
inline float* Out(const AttentionRow& row) { return reinterpret_cast<float*>(row.out); }

/*! What is added to scores, from key number `first` on. */
inline void AddMask(const Tile& tile, int64_t first, int64_t count, float* scores) {
  const bool same = std::all_of(tile.rows, tile.rows + tile.count,
                                [&](const AttentionRow& row) { return row.mask == tile.rows[0].mask; });
  Vector* to = reinterpret_cast<Vector*>(scores);
  if (same) {
    for (int64_t j = 0; j < count; ++j) {
      for (int v = 0; v < kVectors; ++v) to[j * kVectors + v] += Mask(tile.rows[0])[first + j];
    }
    return;
  }
  for (int v = 0; v < kVectors; ++v) {
    const float* from[kLanes];
    const int some = RowsIn(tile, v);
    for (int r = 0; r < some; ++r) from[r] = Mask(tile.rows[v * kLanes + r]) + first;
    for (int64_t j = 0; j < count; j += kLanes) {
      Vector mask[kLanes];
      LoadRows(from, some, j, count, mask);
      Transpose(mask);
      for (int64_t k = j; k < std::min(count, j + kLanes); ++k) to[k * kVectors + v] += mask[k - j];
    }
  }
}

/*! Scores of keys that a row does not see become `closed`. */
inline void Close(const Tile& tile, int64_t first, int64_t count, float closed, float* scores) {
  const Vector nothing = Vector{} + closed;
  Vector* rows = reinterpret_cast<Vector*>(scores);
  const auto close = [&](int64_t from, int64_t to) {
    for (int64_t j = std::max(from, first); j < std::min(to, first + count); ++j) {
      const Ints key = Ints{} + static_cast<int32_t>(j);
      for (int v = 0; v < kVectors; ++v) {
        Vector& x = rows[(j - first) * kVectors + v];
        const Ints *begins = reinterpret_cast<const Ints*>(tile.first),
                   *ends = reinterpret_cast<const Ints*>(tile.last);
        x = (key >= begins[v]) & (key < ends[v]) ? x : nothing;
      }
    }
  };
  close(first, tile.all_from);
  close(std::max(tile.all_from, tile.all_to), first + count);
}

/*! Sums over their totals, by rows; of no open key zeros where the attention is safe, else NaN. */
inline void StoreRows(const Tile& tile, int64_t numbers, bool safe) {
  for (int v = 0; v < kVectors; ++v) {
    Vector inverse = 1.0f / tile.totals[v];
    if (safe) inverse = tile.totals[v] == 0.0f ? Vector{} : inverse;
    const int some = RowsIn(tile, v);
    if (some == 0) return;
    const Vector* sums = reinterpret_cast<const Vector*>(tile.sums) + v;
    int64_t at = 0;
    for (; some == kLanes && at + kLanes <= numbers; at += kLanes, sums += kLanes * kVectors) {
      Vector rows[kLanes];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) rows[r] = sums[r * kVectors] * inverse;
      Transpose(rows);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) *reinterpret_cast<Unaligned*>(Out(tile.rows[v * kLanes + r]) + at) = rows[r];
    }
    for (; at < numbers; at += kLanes, sums += kLanes * kVectors) {
      Vector rows[kLanes];
      for (int r = 0; r < kLanes; ++r) rows[r] = sums[r * kVectors] * inverse;
      Transpose(rows);
      for (int r = 0; r < some; ++r) Put(Out(tile.rows[v * kLanes + r]) + at, rows[r], numbers - at);
    }
  }
}
