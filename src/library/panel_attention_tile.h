// SPDX-License-Identifier: Apache-2.0
// What a tile of queries does with blocks of keys and values. No guard: panel_attention_rows.h includes this behind
// what it needs, in a namespace and for instructions of its own.

/*! Two halves exchanged. */
template <int... kAt>
UIR_INLINE Vector Swapped(const Vector& x, std::integer_sequence<int, kAt...>) {
  return __builtin_shufflevector(x, x, ((kAt + kLanes / 2) % kLanes)...);
}

/*! Sizes, and how a tile's queries and scores are scaled. */
struct Frame {
  const AttentionAttrs& attrs;
  int64_t key_row, value_row;
  int64_t block_keys;                 // keys of a block
  int64_t numbers;                    // of a value, up to whole vectors
  int64_t value_tiles, higher_tiles;  // tiles of the numbers of a value, of which the first ones have one more
  int value_rows;                     // numbers of one of the others
  float query_scale, power;           // scores times `power` are exponents of two

  explicit Frame(const AttentionAttrs& given)
      : attrs(given),
        key_row(given.key.strides[given.batch.size()]),
        value_row(given.value.strides[given.batch.size()]),
        block_keys(std::max<int64_t>(
                       BlockBytes() / static_cast<int64_t>(sizeof(float)) / (given.d + given.e) / kKeysAtOnce, 1) *
                   kKeysAtOnce),
        numbers(RoundUp<int64_t>(given.e, kLanes)),
        value_tiles(CeilDiv<int64_t>(given.e, kMostValues)),
        higher_tiles(given.e % value_tiles),
        value_rows(static_cast<int>(given.e / value_tiles)) {
    constexpr float kLog2E = 1.44269504088896341f;
    // a mask is added to scores as they are: it may be the lowest number, of which there is no multiple
    power = given.masked ? kLog2E : 1.0f;
    query_scale = static_cast<float>(given.masked ? given.scale : given.scale * kLog2E);
  }

  /*! Numbers of a value in a tile of them. */
  int Numbers(int64_t tile) const { return value_rows + (tile < higher_tiles); }
};

/*! Some rows of numbers, `row` floats from one to the next. */
struct Lines {
  const float* at;
  int64_t row;
};

//! Values where they lie; or, where their rows are far from each other and so fight for few places of a cache, side by
//! side in `room`.
Lines ValuesNear(const Frame& frame, const float* from, int64_t count, float* room) {
  const int64_t e = frame.attrs.e;
  if (frame.value_row <= kNearRow) return {from, frame.value_row};
  for (int64_t j = 0; j < count; ++j) std::memcpy(room + j * e, from + j * frame.value_row, e * sizeof(float));
  return {room, e};
}

/*! kNumbers numbers side by side of `count` values. */
template <int kNumbers>
void CopyValues(const float* from, int64_t row, int64_t count, float* to) {
  for (int64_t j = 0; j < count; ++j) std::memcpy(to + j * kNumbers, from + j * row, kNumbers * sizeof(float));
}
template <int... kBefore>
constexpr auto CopiesOf(std::integer_sequence<int, kBefore...>) {
  return std::array<void (*)(const float*, int64_t, int64_t, float*), sizeof...(kBefore)>{CopyValues<kBefore + 1>...};
}
constexpr auto kCopies = CopiesOf(std::make_integer_sequence<int, kMostValues>());

/*! Values tile by tile: [kKeysAtOnce keys][tile of numbers][key][number of the tile]. */
void PackValues(const Frame& frame, const float* values, int64_t count, float* to) {
  constexpr int64_t kLaidOut = 32;  // keys at a time
  for (int64_t first = 0; first < count; first += kKeysAtOnce) {
    const int64_t together = std::min<int64_t>(kKeysAtOnce, count - first);
    for (int64_t j = 0; j < together; j += kLaidOut) {
      const int64_t some = std::min<int64_t>(kLaidOut, together - j);
      const float* from = values + (first + j) * frame.value_row;
      float* here = to + first * frame.attrs.e;
      for (int64_t tile = 0; tile < frame.value_tiles; ++tile) {
        const int numbers = frame.Numbers(tile);
        kCopies[numbers - 1](from, frame.value_row, some, here + j * numbers);
        from += numbers, here += numbers * together;
      }
    }
  }
}

/*! Keys as tiles read them: [tile of kKeyRows keys][number][key of the tile]. Squares of lengths go to `squares`. */
void PackKeys(const Lines& keys, int64_t count, int64_t depth, float* to, Spread* squares) {
  static_assert(kLanes == 2 * kKeyRows);
  const float* from = keys.at;
  for (int64_t j = 0; j < count; j += kKeyRows, from += kKeyRows * keys.row, to += kKeyRows * depth) {
    const int64_t rows = std::min<int64_t>(kKeyRows, count - j);
    Vector sums[2] = {};
    int64_t at = 0;
    if (rows == kKeyRows) {
      Pack<kKeyRows>(from, keys.row, depth, to);
      for (; at + 2 * kLanes <= kKeyRows * depth; at += 2 * kLanes) {  // a vector has two numbers of each key
        const Vector a = *reinterpret_cast<const Unaligned*>(to + at);
        const Vector b = *reinterpret_cast<const Unaligned*>(to + at + kLanes);
        sums[0] += a * a, sums[1] += b * b;
      }
      sums[0] += sums[1];
      sums[0] += Swapped(sums[0], std::make_integer_sequence<int, kLanes>());
    } else {
      for (int64_t number = 0; number < depth; ++number) {
        for (int64_t r = 0; r < rows; ++r) to[number * rows + r] = from[r * keys.row + number];
      }
    }
    for (; at < rows * depth; ++at) sums[0][at % rows] += to[at] * to[at];
    squares->Add(sums[0]);
  }
}

/*! What comes closer while scores are computed: queries of the next tile, keys and values of the next unit. */
struct Ahead {
  FetchAhead queries, keys, values;

  /*! Some lines, once for each tile of keys: a unit's are there long before its turn. */
  UIR_INLINE void Next() {
    constexpr int kLines = 3;
    queries.Next<3>(kLines), keys.Next<2>(kLines), values.Next<2>(kLines);
  }
};

/*! Rows of a tile, and what is known of them. */
struct Rows {
  Tile tile;
  float square;  // of the length of its longest query, as scaled

  int vectors() const { return tile.count > kLanes ? 2 : 1; }
  const float* queries() const { return reinterpret_cast<const float*>(tile.queries); }
};

/*! Queries turned and scaled: [number][query]. The square of the greatest length is returned. */
float PackQueries(const Frame& frame, const Tile& tile, float* to) {
  const int64_t d = frame.attrs.d;
  Spread squares;
  for (int v = 0; v < kVectors; ++v) {
    const float* from[kLanes];
    const int some = RowsIn(tile, v);
    for (int r = 0; r < some; ++r) from[r] = tile.rows[v * kLanes + r].query;
    Vector sums[2] = {};
    int64_t at = 0;
    const auto put = [&](const Vector(&numbers)[kLanes], int64_t r) __attribute__((always_inline)) {
      const Vector scaled = numbers[r] * frame.query_scale;
      sums[r % 2] += scaled * scaled;
      *reinterpret_cast<Vector*>(to + (at + r) * kQueries + v * kLanes) = scaled;
    };
    for (; some == kLanes && at + kLanes <= d; at += kLanes) {
      Vector numbers[kLanes];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) numbers[r] = *reinterpret_cast<const Unaligned*>(from[r] + at);
      Transpose(numbers);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) put(numbers, r);
    }
    for (; at < d; at += kLanes) {
      Vector numbers[kLanes];
      LoadRows(from, some, at, d, numbers);
      Transpose(numbers);
      for (int64_t r = 0; r < std::min<int64_t>(kLanes, d - at); ++r) put(numbers, r);
    }
    squares.Add(sums[0] + sums[1]);
  }
  return squares.Largest();
}

/*! Sums of products of kRows keys and queries of kWide vectors, as many products as numbers were given. */
template <int kWide, int kRows>
struct ScoreSums {
  Vector sums[kRows][kWide] = {};
  const float *keys, *queries;

  UIR_INLINE ScoreSums(const float* of_keys, const float* of_queries) : keys(of_keys), queries(of_queries) {}
  UIR_INLINE void AddNext() {
    Vector some[kWide];
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) some[v] = *reinterpret_cast<const Vector*>(queries + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) AddProducts<kWide>(some, keys + r, sums[r]);
    queries += kQueries, keys += kRows;
  }
  UIR_INLINE void Store(float* scores) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kWide; ++v) *reinterpret_cast<Vector*>(scores + r * kQueries + v * kLanes) = sums[r][v];
    }
  }
};

/*! Scores [key][query]. */
template <int kWide, int kRows>
void ScoreTile(const float* queries, const float* keys, int64_t depth, float* scores) {
  ScoreSums<kWide, kRows> sums(keys, queries);
  for (int64_t number = 0; number < depth; ++number) sums.AddNext();
  sums.Store(scores);
}
/*! By the number of keys, less one. */
template <int kWide, int... kBefore>
constexpr auto ScoreTilesOf(std::integer_sequence<int, kBefore...>) {
  return std::array<void (*)(const float*, const float*, int64_t, float*), kKeyRows>{ScoreTile<kWide, kBefore + 1>...};
}
template <int kWide>
constexpr auto kScoreTiles = ScoreTilesOf<kWide>(std::make_integer_sequence<int, kKeyRows>());

/*! Scores of `count` keys. */
void Scores(const Frame& frame, const Rows& rows, const float* keys, int64_t count, float* scores, Ahead* ahead) {
  const auto& tiles = rows.vectors() == 2 ? kScoreTiles<2> : kScoreTiles<1>;
  const int64_t depth = frame.attrs.d;
  for (int64_t j = 0; j < count; j += kKeyRows) {
    ahead->Next();
    tiles[std::min<int64_t>(kKeyRows, count - j) - 1](rows.queries(), keys + j * depth, depth, scores + j * kQueries);
  }
}

//! Weights of kKeyRows keys, whose scores are exponents of two as they are, while the scores of the keys behind them
//! are computed: products leave the units of additions and of integers idle.
template <int kWide>
void ScoreTileWeighing(const float* queries, const float* keys, int64_t depth, float* scores, Vector* totals) {
  ScoreSums<kWide, kKeyRows> sums(keys, queries);
  Vector total[kWide];
#pragma GCC unroll 2
  for (int v = 0; v < kWide; ++v) total[v] = totals[v];
  const int64_t together = depth / kKeyRows;
  for (float* weigh = scores - kKeyRows * kQueries; weigh < scores; weigh += kQueries) {
    Vector x[kWide];
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) x[v] = *reinterpret_cast<const Vector*>(weigh + v * kLanes);
    PowersOfTwo<kWide>(x);
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) *reinterpret_cast<Vector*>(weigh + v * kLanes) = x[v], total[v] += x[v];
    for (int64_t at = 0; at < together; ++at) sums.AddNext();
  }
  for (int64_t at = together * kKeyRows; at < depth; ++at) sums.AddNext();
#pragma GCC unroll 2
  for (int v = 0; v < kWide; ++v) totals[v] = total[v];
  sums.Store(scores);
}

//! Scores of `count` keys, whole tiles, and weights of all but the last tile of them; returns of how many keys.
int64_t ScoresWeighing(const Frame& frame, const Rows& rows, const float* keys, int64_t count, float* scores,
                       Ahead* ahead) {
  const int64_t depth = frame.attrs.d;
  const auto weighing = rows.vectors() == 2 ? ScoreTileWeighing<2> : ScoreTileWeighing<1>;
  if (count == 0) return 0;
  (rows.vectors() == 2 ? kScoreTiles<2> : kScoreTiles<1>)[kKeyRows - 1](rows.queries(), keys, depth, scores);
  for (int64_t j = kKeyRows; j < count; j += kKeyRows) {
    ahead->Next();
    weighing(rows.queries(), keys + j * depth, depth, scores + j * kQueries, rows.tile.totals);
  }
  return count - kKeyRows;
}

/*! How scores become weights: exponents as they are, or with the greatest taken off, which a mask may have lowered. */
enum class Weighing { kBounded, kPlain, kMasked };

//! Scores become weights, the greatest scores and the sums so far go on; what was summed, if anything, is scaled where
//! a greatest score has risen. `count` is even.
template <Weighing kHow>
void Weigh(const Frame& frame, const Rows& rows, bool starts, int64_t count, float* scores) {
  const Tile& tile = rows.tile;
  for (int v = 0; v < rows.vectors(); ++v) {
    Vector* at = reinterpret_cast<Vector*>(scores) + v;
    Vector* const end = at + count * kVectors;
    const Vector before = tile.peaks[v];
    Vector peak = before;
    if (kHow != Weighing::kBounded) {
      Vector most[2] = {before, before};
      for (const Vector* from = at; from < end; from += 2 * kVectors) {
        most[0] = Max(from[0], most[0]), most[1] = Max(from[kVectors], most[1]);
      }
      peak = Max(most[0], most[1]);
      tile.peaks[v] = peak;
      if (!starts && Differ(peak, before)) {
        Vector kept = (before - peak) * frame.power;
        HeldPowersOfTwo<1>(&kept);
        tile.totals[v] *= kept;
        Vector* sums = reinterpret_cast<Vector*>(tile.sums) + v;
        for (int64_t number = 0; number < frame.attrs.e; ++number) sums[number * kVectors] *= kept;
      }
    }
    Vector sum[2] = {tile.totals[v], {}};
    for (; at < end; at += 2 * kVectors) {
      Vector x[2] = {at[0], at[kVectors]};
      if (kHow != Weighing::kBounded) x[0] -= peak, x[1] -= peak;
      if (kHow == Weighing::kMasked) x[0] *= frame.power, x[1] *= frame.power;
      kHow == Weighing::kBounded ? PowersOfTwo<2>(x) : HeldPowersOfTwo<2>(x);
      at[0] = x[0], at[kVectors] = x[1];
      sum[0] += x[0], sum[1] += x[1];
    }
    tile.totals[v] = sum[0] + sum[1];
  }
}

/*! Sums [number][query] of kNumbers numbers of values by weights [key][query], after what is there, or from 0 on. */
template <int kWide, int kNumbers>
void ValueTile(const float* weights, Lines values, int64_t count, bool starts, float* to) {
  Vector sums[kNumbers][kWide];
#pragma GCC unroll 8
  for (int r = 0; r < kNumbers; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) {
      sums[r][v] = starts ? Vector{} : *reinterpret_cast<const Vector*>(to + r * kQueries + v * kLanes);
    }
  }
#pragma GCC unroll 4
  for (int64_t key = 0; key < count; ++key, weights += kQueries, values.at += values.row) {
    Vector some[kWide];
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) some[v] = *reinterpret_cast<const Vector*>(weights + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kNumbers; ++r) AddProducts<kWide>(some, values.at + r, sums[r]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kNumbers; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) *reinterpret_cast<Vector*>(to + r * kQueries + v * kLanes) = sums[r][v];
  }
}
/*! By how many numbers, less one. */
template <int kWide, int... kBefore>
constexpr auto ValueTilesOf(std::integer_sequence<int, kBefore...>) {
  return std::array<void (*)(const float*, Lines, int64_t, bool, float*), kMostValues>{
      ValueTile<kWide, kBefore + 1>...};
}
template <int kWide>
constexpr auto kValueTiles = ValueTilesOf<kWide>(std::make_integer_sequence<int, kMostValues>());

/*! Sums += values by weights, or begin with that. */
void AddValues(const Frame& frame, const Rows& rows, bool starts, Lines values, int64_t all, int64_t count,
               const float* weights) {
  const auto& of = rows.vectors() == 2 ? kValueTiles<2> : kValueTiles<1>;
  float* sums = rows.tile.sums;
  for (int64_t tile = 0; tile < frame.value_tiles; ++tile) {
    const int numbers = frame.Numbers(tile);
    if (kLaysOutValues) values.row = numbers;
    of[numbers - 1](weights, values, count, starts, sums);
    values.at += kLaysOutValues ? numbers * all : numbers, sums += numbers * kQueries;
  }
}

/*! Whether what a tile summed of values are numbers. */
bool AreNumbers(const Tile& tile, int64_t numbers) {
  Spread spread;
  const Vector* sums = reinterpret_cast<const Vector*>(tile.sums);
  for (int64_t at = 0; at < numbers * kVectors; at += kVectors) {
    for (int v = 0; v < kVectors; ++v) {
      if (RowsIn(tile, v) > 0) spread.Add(sums[at + v]);
    }
  }
  return spread.Largest() <= std::numeric_limits<float>::max();
}

/*! Where a tile's results will be comes closer meanwhile. */
void FetchResults(const Tile& tile, int64_t numbers) {
  for (int r = 0; r < tile.count; ++r) {
    for (int64_t at = 0; at < numbers; at += kLine / sizeof(float)) __builtin_prefetch(Out(tile.rows[r]) + at, 1);
  }
}

/*! Some keys of a block, from number `first` on, for some rows. */
void AttendKeys(const Frame& frame, const Rows& rows, bool bounded, int64_t first, int64_t all, const float* keys,
                Lines values, float* scores, Ahead* ahead) {
  const Tile& tile = rows.tile;
  const int64_t open = std::min(all, tile.end - first), whole = RoundUp<int64_t>(open, 2);
  const bool starts = first <= tile.begin, masked = frame.attrs.masked;
  int64_t weighed = 0, scored = 0;
  if (kWeighsBeside && bounded && tile.all_from <= first) {
    scored = std::clamp<int64_t>(tile.all_to - first, 0, all) / kKeyRows * kKeyRows;
    weighed = ScoresWeighing(frame, rows, keys, scored, scores, ahead);
  }
  Scores(frame, rows, keys + scored * frame.attrs.d, std::min(all, RoundUp<int64_t>(open, kKeyRows)) - scored,
         scores + scored * kQueries, ahead);
  if (masked) AddMask(tile, first, open, scores);
  if (first < tile.all_from || tile.all_to < first + whole)
    Close(tile, first, whole, bounded ? kZero : kClosed, scores);
  const auto weigh = masked ? Weigh<Weighing::kMasked> : bounded ? Weigh<Weighing::kBounded> : Weigh<Weighing::kPlain>;
  weigh(frame, rows, starts, whole - weighed, scores + weighed * kQueries);
  if (tile.end <= first + all) FetchResults(tile, frame.attrs.e);
  AddValues(frame, rows, starts, values, all, open, scores);
}
