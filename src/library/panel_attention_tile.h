// SPDX-License-Identifier: Apache-2.0
// Blocks of keys and values laid out for tiles of a product, and what a tile of queries does with them. No guard:
// panel_attention.cc includes this behind attention_tile.h, in a namespace and for instructions of its own.

/*! The larger numbers; where one is NaN, `b`. */
UIR_INLINE Vector Max(const Vector& a, const Vector& b) { return (Vector)_mm256_max_ps((__m256)a, (__m256)b); }

/*! A score that nothing reaches, and an exponent of two whose power is zero, as `PowersOfTwo` computes it. */
constexpr float kClosed = -std::numeric_limits<float>::infinity(), kZero = -127.0f;

/*! 2^(i/8) as bits, less the i that is added to the exponent with the rest of it. */
constexpr Bits kEighths = {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                           0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};

//! 2^x of -127 <= x < 127 within 1 ulp, zero of -127, of kCount vectors that need not wait for each other: 2^(n/8) of a
//! table and 2^r = 1 + r q(r), |r| <= 1/16, q of least relative error (2.6e-8). NaN for NaN.
template <int kCount>
UIR_INLINE void PowersOfTwo(Vector* x) {
  constexpr float kRound = 1.5f * (1 << 20);  // a sum with it has eighths as its last bits
  Vector power[kCount], p[kCount];
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    const Vector shifted = x[i] + kRound;
    x[i] -= shifted - kRound;
    const Bits eighths = (Bits)_mm256_permutevar8x32_epi32((__m256i)kEighths, (__m256i)shifted);
    power[i] = reinterpret_cast<Vector>(eighths + (reinterpret_cast<Bits>(shifted) << 20));
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) p[i] = (x[i] * 0.0554962218f + 0.2402576298f) * x[i] + 0.6931472143f;
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = p[i] * (x[i] * power[i]) + power[i];
}

/*! Of -infinity too, and of what would be less than a normal number: zero, or next to it. */
template <int kCount>
UIR_INLINE void HeldPowersOfTwo(Vector* x) {
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = Max(Vector{} + kZero, x[i]);
  PowersOfTwo<kCount>(x);
}

/*! Sizes, and how a tile's queries and scores are scaled. */
struct Frame {
  const AttentionAttrs& attrs;
  const PanelKernels& kernels;
  int64_t key_row, value_row;
  int64_t block_keys;                 // keys that are laid out at a time
  int64_t numbers;                    // of a value, up to whole vectors
  int64_t value_tiles, higher_tiles;  // tiles of the numbers of a value, of which the first ones have one more
  int value_rows;                     // numbers of one of the others
  float query_scale, power;           // scores times `power` are exponents of two

  Frame(const AttentionAttrs& given, const PanelKernels& found)
      : attrs(given),
        kernels(found),
        key_row(given.key.strides[given.batch.size()]),
        value_row(given.value.strides[given.batch.size()]),
        block_keys(std::max<int64_t>(
                       kBlockBytes / static_cast<int64_t>(sizeof(float)) / (given.d + given.e) / kKeysAtOnce, 1) *
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
  int ValueRows(int64_t tile) const { return value_rows + (tile < higher_tiles); }
};

//! Keys as tiles read them: [tile of kKeyRows keys][number][key of the tile]. Squares of their lengths go to `squares`.
void PackKeys(const Frame& frame, const float* keys, int64_t count, float* to, Spread* squares) {
  const int64_t d = frame.attrs.d;
  const PanelPackOf pack = frame.kernels.pack(kKeyRows);
  for (int64_t j = 0; j < count; j += kKeyRows, keys += kKeyRows * frame.key_row, to += kKeyRows * d) {
    const int rows = static_cast<int>(std::min<int64_t>(kKeyRows, count - j));
    (rows == kKeyRows ? pack : frame.kernels.pack(rows))(keys, frame.key_row, d, to);
    Vector sums[2] = {};
    int64_t at = 0;
    if (rows == kKeyRows) {  // a vector has two numbers of each key
      for (; at + 2 * kLanes <= kKeyRows * d; at += 2 * kLanes) {
        const Vector a = *reinterpret_cast<const Unaligned*>(to + at);
        const Vector b = *reinterpret_cast<const Unaligned*>(to + at + kLanes);
        sums[0] += a * a, sums[1] += b * b;
      }
      sums[0] += sums[1];
      sums[0] += __builtin_shufflevector(sums[0], sums[0], 4, 5, 6, 7, 0, 1, 2, 3);
    }
    for (; at < rows * d; ++at) sums[0][at % rows] += to[at] * to[at];
    squares->Add(sums[0]);
  }
}

/*! What lies side by side. */
UIR_INLINE void AddAll(const float* from, int64_t count, Spread* spread) {
  Spread found[2] = {*spread, {}};
  int64_t at = 0;
  for (; at + 2 * kLanes <= count; at += 2 * kLanes) {
    found[0].Add(*reinterpret_cast<const Unaligned*>(from + at));
    found[1].Add(*reinterpret_cast<const Unaligned*>(from + at + kLanes));
  }
  for (; at < count; ++at) found[0].Add(Vector{} + from[at]);
  *spread = found[0];
  spread->Add(reinterpret_cast<Vector>(found[1].most));
}

/*! kRows numbers side by side of `count` values. */
template <int kRows>
void CopyValues(const float* from, int64_t row, int64_t count, float* to) {
  for (int64_t j = 0; j < count; ++j) std::memcpy(to + j * kRows, from + j * row, kRows * sizeof(float));
}
template <int... kBefore>
constexpr auto CopiesOf(std::integer_sequence<int, kBefore...>) {
  return std::array<void (*)(const float*, int64_t, int64_t, float*), sizeof...(kBefore)>{CopyValues<kBefore + 1>...};
}
constexpr auto kCopies = CopiesOf(std::make_integer_sequence<int, kMostValues>());

/*! Values as tiles read them: [kKeysAtOnce keys][tile of numbers][key][number of the tile]. */
void PackValues(const Frame& frame, const float* values, int64_t count, float* to, Spread* spread) {
  const int64_t e = frame.attrs.e;
  for (int64_t first = 0; first < count; first += kKeysAtOnce) {
    const int64_t together = std::min<int64_t>(kKeysAtOnce, count - first);
    for (int64_t j = 0; j < together; j += kKeysLaidOut) {
      const int64_t some = std::min<int64_t>(kKeysLaidOut, together - j);
      const float* from = values + (first + j) * frame.value_row;
      for (int64_t key = 0; key < some; ++key) AddAll(from + key * frame.value_row, e, spread);
      float* here = to + first * e;
      for (int64_t tile = 0; tile < frame.value_tiles; ++tile) {
        const int rows = frame.ValueRows(tile);
        kCopies[rows - 1](from, frame.value_row, some, here + j * rows);
        from += rows, here += rows * together;
      }
    }
  }
}

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
    Vector sum = {};
    int64_t at = 0;
    const auto put = [&](const Vector(&numbers)[kLanes], int64_t r) __attribute__((always_inline)) {
      const Vector scaled = numbers[r] * frame.query_scale;
      sum += scaled * scaled;
      *reinterpret_cast<Vector*>(to + (at + r) * kQueries + v * kLanes) = scaled;
    };
    for (; some == kLanes && at + kLanes <= d; at += kLanes) {
      Vector numbers[kLanes];
#pragma GCC unroll 8
      for (int r = 0; r < kLanes; ++r) numbers[r] = *reinterpret_cast<const Unaligned*>(from[r] + at);
      Transpose(numbers);
#pragma GCC unroll 8
      for (int r = 0; r < kLanes; ++r) put(numbers, r);
    }
    for (; at < d; at += kLanes) {
      Vector numbers[kLanes];
      LoadRows(from, some, at, d, numbers);
      Transpose(numbers);
      for (int64_t r = 0; r < std::min<int64_t>(kLanes, d - at); ++r) put(numbers, r);
    }
    squares.Add(sum);
  }
  return squares.Largest();
}

/*! What the next tile reads first comes closer meanwhile. */
void FetchQueries(const Frame& frame, const AttentionRow* rows, int64_t count) {
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t at = 0; at < frame.attrs.d; at += kLine / sizeof(float)) __builtin_prefetch(rows[r].query + at);
  }
}

/*! Scores [key][query] of kRows keys for queries of kWide vectors. */
template <int kWide, int kRows>
void ScoreTile(const float* queries, const float* keys, int64_t depth, float* scores) {
  Vector sums[kRows][kWide] = {};
  for (const float* const end = keys + depth * kRows; keys < end; queries += kQueries, keys += kRows) {
    Vector some[kWide];
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) some[v] = *reinterpret_cast<const Vector*>(queries + v * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kWide; ++v) sums[r][v] += some[v] * keys[r];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWide; ++v) *reinterpret_cast<Vector*>(scores + r * kQueries + v * kLanes) = sums[r][v];
  }
}
/*! By the number of keys, less one. */
template <int kWide>
constexpr std::array<void (*)(const float*, const float*, int64_t, float*), kKeyRows> kScoreTiles = {
    ScoreTile<kWide, 1>, ScoreTile<kWide, 2>, ScoreTile<kWide, 3>, ScoreTile<kWide, 4>};

/*! Scores of `count` keys. */
void Scores(const Frame& frame, const Rows& rows, const float* keys, int64_t count, float* scores) {
  const auto& tiles = rows.vectors() == 2 ? kScoreTiles<2> : kScoreTiles<1>;
  const int64_t depth = frame.attrs.d;
  for (int64_t j = 0; j < count; j += kKeyRows) {
    tiles[std::min<int64_t>(kKeyRows, count - j) - 1](rows.queries(), keys + j * depth, depth, scores + j * kQueries);
  }
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
      if (!starts && _mm256_movemask_ps(_mm256_cmp_ps((__m256)peak, (__m256)before, _CMP_NEQ_UQ))) {
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

/*! Sums += values by weights, or begin with that. */
void AddValues(const Frame& frame, const Rows& rows, bool starts, const float* values, int64_t laid_out, int64_t count,
               const float* weights) {
  PanelTile part;
  part.x = values, part.weight = weights;
  part.width = kQueries, part.depth = count, part.first = starts;
  float* sums = rows.tile.sums;
  const auto add = [&](int64_t tiles, int numbers) {
    if (tiles == 0) return;
    const PanelSumsOf of = frame.kernels.sums(rows.vectors(), numbers);
    for (int64_t tile = 0; tile < tiles; ++tile, part.x += numbers * laid_out, sums += numbers * kQueries)
      of(part, sums);
  };
  add(frame.higher_tiles, frame.value_rows + 1);
  add(frame.value_tiles - frame.higher_tiles, frame.value_rows);
}

/*! Where a tile's results will be comes closer meanwhile. */
void FetchResults(const Tile& tile, int64_t numbers) {
  for (int r = 0; r < tile.count; ++r) {
    for (int64_t at = 0; at < numbers; at += kLine / sizeof(float)) __builtin_prefetch(Out(tile.rows[r]) + at, 1);
  }
}

/*! Some keys of a block, from number `first` on, for some rows. */
void AttendKeys(const Frame& frame, const Rows& rows, bool bounded, int64_t first, int64_t laid_out, const float* keys,
                const float* values, float* scores) {
  const Tile& tile = rows.tile;
  const int64_t open = std::min(laid_out, tile.end - first), whole = RoundUp<int64_t>(open, 2);
  const bool starts = first <= tile.begin, masked = frame.attrs.masked;
  Scores(frame, rows, keys, std::min(laid_out, RoundUp<int64_t>(open, kKeyRows)), scores);
  if (masked) AddMask(tile, first, open, scores);
  if (first < tile.all_from || tile.all_to < first + whole)
    Close(tile, first, whole, bounded ? kZero : kClosed, scores);
  const auto weigh = masked ? Weigh<Weighing::kMasked> : bounded ? Weigh<Weighing::kBounded> : Weigh<Weighing::kPlain>;
  weigh(frame, rows, starts, whole, scores);
  if (tile.end <= first + laid_out) FetchResults(tile, frame.attrs.e);
  AddValues(frame, rows, starts, values, laid_out, open, scores);
}
