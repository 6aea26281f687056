// SPDX-License-Identifier: Apache-2.0
#include "library/tile_attention.h"

#include "library/tile_product.h"

#ifdef UIR_TILES
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/rounding.h"
#include "library/kernel.h"
#include "library/parallel.h"

namespace uir::library {

#ifdef UIR_TILES
namespace {

/*! Queries of a tile, keys of its scores at a time, and bytes of packed keys and values that stay in the cache. */
constexpr int kQueries = 32, kKeysAtOnce = 256;
constexpr int64_t kBlockBytes = 896 << 10;
/*! Powers of two between which numbers have pieces whose products, and the sums of them, are as exact as float32. */
constexpr int kLeast = -60, kLimit = 55;

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,amx-tile,amx-bf16")
namespace tiles {
constexpr int kLanes = 16;
#include "library/vector_math.h"
// behind what it needs
#include "library/tile_pieces.h"

typedef int32_t Ints __attribute__((vector_size(64), aligned(4)));

/*! Vectors of the queries of a tile. */
constexpr int kVectors = kQueries / kLanes;

//! 2^x of x <= 0 within 2 ulp: 2^r = 1 + r q(r) of the fraction r, q of least relative error (2.1e-9), times a power.
UIR_INLINE Vector PowerOfTwo(const Vector& x) {
  const Vector r = (Vector)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  Vector p = r * 2.1612916316371e-4f + 1.2467845808714628e-3f;
  p = p * r + 9.675451554358006e-3f;
  p = p * r + 5.5485282093286514e-2f;
  p = p * r + 2.402293086051941e-1f;
  p = p * r + 6.931470632553101e-1f;
  p = p * r + 1.0f;
  return (Vector)_mm512_scalef_ps((__m512)p, (__m512)x);
}

/*! Sizes in tiles, and where the parts of a thread's memory lie. */
struct Frame {
  const AttentionAttrs& attrs;
  int64_t depth, width;  // steps of a head, pairs of tiles of a value
  int64_t key_row, value_row;
  int64_t block_keys;        // keys that are packed at a time
  float query_scale, power;  // scores times `power` are exponents of two

  explicit Frame(const AttentionAttrs& given)
      : attrs(given),
        depth(CeilDiv(given.d, kDepth)),
        width(CeilDiv(given.e, 2 * kSide)),
        key_row(given.key.strides[given.batch.size()]),
        value_row(given.value.strides[given.batch.size()]),
        block_keys(std::max<int64_t>(kBlockBytes / (kStepBytes * (depth + width)) * kDepth / kKeysAtOnce, 1) *
                   kKeysAtOnce) {
    constexpr float kLog2E = 1.44269504088896341f;
    // a mask is added to scores as they are: it may be the lowest number, of which there is no multiple
    power = given.masked ? kLog2E : 1.0f;
    query_scale = static_cast<float>(given.masked ? given.scale : given.scale * kLog2E);
  }
};

/*! Values turned: [step of 32 keys][pair of tiles of a value][piece][2][16 numbers of a value][32 keys]. */
void PackValues(const Frame& frame, const float* values, int64_t count, char* to, Spread* spread) {
  const int64_t e = frame.attrs.e;
  for (int64_t j = 0; j < RoundUp(count, kDepth); j += kLanes) {
    const float* rows[kLanes];
    for (int r = 0; r < kLanes; ++r) rows[r] = values + (j + r) * frame.value_row;
    const int some = static_cast<int>(std::min<int64_t>(kLanes, std::max<int64_t>(count - j, 0)));
    for (int64_t at = 0; at < frame.width * 2 * kSide; at += kSide) {
      Vector numbers[kLanes];
      LoadRows(rows, some, at, e, numbers);
      for (int r = 0; r < kLanes; ++r) spread->Add(numbers[r]);
      Transpose(numbers);
      char* here = to + (j / kDepth * frame.width + at / (2 * kSide)) * kStepBytes + at / kSide % 2 * kTileBytes +
                   j % kDepth * 2;
      for (int r = 0; r < kSide; ++r) {
        for (int piece = 0; piece < kExact; ++piece) {
          const Halves halves = __builtin_convertvector(Piece(numbers[r]) >> 16, Halves);
          *reinterpret_cast<UnalignedHalves*>(here + piece * kPairBytes + r * 2 * kDepth) = halves;
        }
      }
    }
  }
}

/*! Queries turned: [step of the head][piece][2][pairs of numbers][16 queries][2]. */
void PackQueries(const Frame& frame, const AttentionRow* rows, int count, char* to, Spread* spread) {
  const int64_t d = frame.attrs.d;
  for (int side = 0; side < kVectors; ++side) {
    const float* from[kLanes];
    const int some = std::clamp(count - side * kLanes, 0, kLanes);
    for (int r = 0; r < some; ++r) from[r] = rows[side * kLanes + r].query;
    for (int64_t at = 0; at < frame.depth * kDepth; at += kLanes) {
      Vector numbers[kLanes];
      LoadRows(from, some, at, d, numbers);
      for (int r = 0; r < kLanes; ++r) {
        numbers[r] *= frame.query_scale;
        spread->Add(numbers[r]);
      }
      Transpose(numbers);
      char* here = to + at / kDepth * kStepBytes + side * kTileBytes + at % kDepth * 32;
      for (int pair = 0; pair < kLanes; pair += 2) {
        for (int piece = 0; piece < kExact; ++piece) {
          const Bits first = Piece(numbers[pair]) >> 16;
          *reinterpret_cast<Bits*>(here + piece * kPairBytes + pair * 32) = Piece(numbers[pair + 1]) | first;
        }
      }
    }
  }
}

/*! What is added to a row's scores, and where its result goes. */
const float* Mask(const AttentionRow& row) { return reinterpret_cast<const float*>(row.mask); }
float* Out(const AttentionRow& row) { return reinterpret_cast<float*>(row.out); }

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

/*! scores[key][query] of whole steps of keys. */
UIR_INLINE void Scores(const Frame& frame, const Tile& tile, const char* keys, int64_t steps, float* scores) {
  for (int64_t step = 0; step < steps; ++step, keys += frame.depth * kStepBytes, scores += 2 * kSide * kQueries) {
    ZeroSums();
    for (int64_t at = 0; at < frame.depth; ++at) {
      AddProducts<kExact>(PairAt(keys + at * kStepBytes), true, PairAt(tile.queries + at * kStepBytes));
    }
    StoreSums(scores);
  }
}

/*! What is added to scores, from key number `first` on. */
void AddMask(const Tile& tile, int64_t first, int64_t count, float* scores) {
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
    const int some = std::clamp(tile.count - v * kLanes, 0, kLanes);
    for (int r = 0; r < some; ++r) from[r] = Mask(tile.rows[v * kLanes + r]) + first;
    for (int64_t j = 0; j < count; j += kLanes) {
      Vector mask[kLanes];
      LoadRows(from, some, j, count, mask);
      Transpose(mask);
      for (int64_t k = j; k < std::min(count, j + kLanes); ++k) to[k * kVectors + v] += mask[k - j];
    }
  }
}

/*! Scores of keys that a row does not see become -inf. */
UIR_INLINE void Close(const Tile& tile, int64_t first, int64_t count, float* scores) {
  const Vector closed = Vector{} - std::numeric_limits<float>::infinity();
  Vector* rows = reinterpret_cast<Vector*>(scores);
  for (int64_t j = 0; j < count; ++j) {
    const Ints key = Ints{} + static_cast<int32_t>(first + j);
    for (int v = 0; v < kVectors; ++v) {
      Vector& x = rows[j * kVectors + v];
      const Ints *from = reinterpret_cast<const Ints*>(tile.first), *to = reinterpret_cast<const Ints*>(tile.last);
      x = (key >= from[v]) & (key < to[v]) ? x : closed;
    }
  }
}

//! Scores become weights in pieces, [step of 32 keys][piece][2][pairs of keys][16 queries][2]; the greatest scores and
//! the sums so far go on.
template <bool kMasked>
UIR_INLINE void Weigh(const Frame& frame, const Tile& tile, int64_t count, const float* scores, char* weights) {
  const Vector* from = reinterpret_cast<const Vector*>(scores);
  for (int v = 0; v < kVectors; ++v) {
    const Vector before = tile.peaks[v];
    Vector most[4] = {before, before, before, before};
    for (int64_t j = 0; j < count; j += 4) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        most[k] = (Vector)_mm512_max_ps((__m512)from[(j + k) * kVectors + v], (__m512)most[k]);
      }
    }
    const Vector peak = (Vector)_mm512_max_ps(_mm512_max_ps((__m512)most[0], (__m512)most[1]),
                                              _mm512_max_ps((__m512)most[2], (__m512)most[3]));
    Vector sum[2] = {tile.totals[v], {}};
    if (_mm512_cmp_ps_mask((__m512)peak, (__m512)before, _CMP_NEQ_UQ)) {
      const Vector kept = PowerOfTwo((before - peak) * frame.power);
      sum[0] *= kept;
      Vector* sums = reinterpret_cast<Vector*>(tile.sums) + v;
      for (int64_t at = 0; at < frame.width * 2 * kSide; ++at) sums[at * kVectors] *= kept;
      tile.peaks[v] = peak;
    }
    char* to = weights + v * kTileBytes;
    for (int64_t j = 0; j < count; j += 2) {
      char* here = to + j / kDepth * kStepBytes + j % kDepth * 32;
      Vector weight[2];
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        Vector x = from[(j + k) * kVectors + v] - peak;
        if (kMasked) x *= frame.power;
        weight[k] = PowerOfTwo(x);
        sum[k] += weight[k];
      }
      // cut off, not rounded, which is cheaper: values' pieces are rounded, so that what is left out has no bias
#pragma GCC unroll 3
      for (int piece = 0; piece < kExact; ++piece) {
        *reinterpret_cast<__m512i*>(here + piece * kPairBytes) = UpperHalves(weight[0], weight[1]);
        if (piece + 1 < kExact) weight[0] -= Upper(weight[0]), weight[1] -= Upper(weight[1]);
      }
    }
    tile.totals[v] = sum[0] + sum[1];
  }
}

/*! Sums += values by weights. */
UIR_INLINE void AddValues(const Frame& frame, const Tile& tile, const char* values, const char* weights,
                          int64_t steps) {
  for (int64_t pair = 0; pair < frame.width; ++pair) {
    float* sums = tile.sums + pair * 2 * kSide * kQueries;
    LoadSums(sums);
    for (int64_t step = 0; step < steps; ++step) {
      AddProducts<kExact>(PairAt(values + (step * frame.width + pair) * kStepBytes), true,
                          PairAt(weights + step * kStepBytes));
    }
    StoreSums(sums);
  }
}

/*! Sums over their totals, by rows; of no open key zeros where the attention is safe, else NaN. */
void Store(const Frame& frame, const Tile& tile) {
  const int64_t e = frame.attrs.e;
  for (int v = 0; v < kVectors; ++v) {
    Vector inverse = 1.0f / tile.totals[v];
    if (frame.attrs.safe) inverse = tile.totals[v] == 0.0f ? Vector{} : inverse;
    const int some = std::clamp(tile.count - v * kLanes, 0, kLanes);
    for (int64_t at = 0; at < e; at += kSide) {
      Vector numbers[kLanes];
      const Vector* sums = reinterpret_cast<const Vector*>(tile.sums) + at * kVectors + v;
      for (int r = 0; r < kLanes; ++r) numbers[r] = sums[r * kVectors] * inverse;
      Transpose(numbers);
      for (int r = 0; r < some; ++r) Put(Out(tile.rows[v * kLanes + r]) + at, numbers[r], e - at);
    }
  }
}

Tile MakeTile(const AttentionRow* rows, int count) {
  Tile tile = {};
  tile.rows = rows, tile.count = count;
  tile.begin = tile.all_to = std::numeric_limits<int32_t>::max();
  for (int r = 0; r < count; ++r) {
    tile.first[r] = static_cast<int32_t>(rows[r].begin);
    tile.last[r] = static_cast<int32_t>(rows[r].end);
    tile.begin = std::min(tile.begin, rows[r].begin), tile.end = std::max(tile.end, rows[r].end);
    tile.all_from = std::max(tile.all_from, rows[r].begin), tile.all_to = std::min(tile.all_to, rows[r].end);
  }
  return tile;
}

/*! Some rows of a unit; false where a number has no pieces. */
bool Attend(const Frame& frame, const AttentionUnit& unit, Range rows) {
  const int64_t count = CeilDiv(rows.size, kQueries), sum_floats = frame.width * 2 * kSide * kQueries;
  const int64_t query_bytes = frame.depth * kStepBytes, block_steps = frame.block_keys / kDepth;
  const int64_t state_bytes = (sum_floats + 2 * kQueries) * sizeof(float);
  const int64_t weight_bytes = kKeysAtOnce / kDepth * kStepBytes;
  const int64_t score_bytes = kKeysAtOnce * kQueries * sizeof(float);
  char* room = ThreadScratch(0, weight_bytes + score_bytes + block_steps * (frame.depth + frame.width) * kStepBytes +
                                    count * (query_bytes + state_bytes));
  auto take = [&](int64_t bytes) { return room += bytes, room - bytes; };
  char* weights = take(weight_bytes);
  float* scores = reinterpret_cast<float*>(take(score_bytes));
  char* keys = take(block_steps * frame.depth * kStepBytes);
  char* values = take(block_steps * frame.width * kStepBytes);
  Spread queries_spread, keys_spread, values_spread;
  std::vector<Tile> made;
  int64_t begin = frame.attrs.n, end = 0;
  for (int64_t at = 0; at < rows.size; at += kQueries) {
    const auto some = static_cast<int>(std::min<int64_t>(kQueries, rows.size - at));
    Tile tile = MakeTile(unit.rows.data() + rows.begin + at, some);
    begin = std::min(begin, tile.begin), end = std::max(end, tile.end);
    char* queries = take(query_bytes);
    PackQueries(frame, tile.rows, some, queries, &queries_spread);
    char* state = take(state_bytes);
    std::memset(state, 0, state_bytes);
    tile.queries = queries;
    tile.sums = reinterpret_cast<float*>(state);
    tile.totals = reinterpret_cast<Vector*>(tile.sums + sum_floats);
    tile.peaks = tile.totals + kVectors;
    // the lowest number and not -inf, so that keys that are closed to a row add nothing: exp(-inf - lowest) = 0
    for (int v = 0; v < kVectors; ++v) tile.peaks[v] = Vector{} + std::numeric_limits<float>::lowest();
    made.push_back(tile);
  }
  if (!queries_spread.HasPieces(kLeast, kLimit)) return false;
  const Tiles tiles;
  for (int64_t block = begin; block < end; block += frame.block_keys) {
    const int64_t size = std::min(frame.block_keys, end - block);
    PackRows(reinterpret_cast<const float*>(unit.keys) + block * frame.key_row, frame.key_row, size, frame.attrs.d,
             keys, &keys_spread);
    PackValues(frame, reinterpret_cast<const float*>(unit.values) + block * frame.value_row, size, values,
               &values_spread);
    if (!keys_spread.HasPieces(kLeast, kLimit) || !values_spread.HasPieces(kLeast, kLimit)) return false;
    for (const Tile& tile : made) {
      for (int64_t first = block; first < block + size; first += kKeysAtOnce) {
        if (first + kKeysAtOnce <= tile.begin || tile.end <= first) continue;
        const int64_t open = std::min<int64_t>({kKeysAtOnce, tile.end - first, block + size - first});
        const int64_t steps = CeilDiv(open, kDepth), all = steps * kDepth, step = (first - block) / kDepth;
        Scores(frame, tile, keys + step * frame.depth * kStepBytes, steps, scores);
        if (frame.attrs.masked) AddMask(tile, first, open, scores);
        if (first < tile.all_from || tile.all_to < first + all) Close(tile, first, all, scores);
        if (frame.attrs.masked) {
          Weigh<true>(frame, tile, all, scores, weights);
        } else {
          Weigh<false>(frame, tile, all, scores, weights);
        }
        AddValues(frame, tile, values + step * frame.width * kStepBytes, weights, steps);
      }
    }
  }
  for (const Tile& tile : made) Store(frame, tile);
  return true;
}
}  // namespace tiles
#pragma GCC pop_options

/*! Rows of a part at least where a unit is cut: each part packs the keys again. */
constexpr int64_t kPartRows = 128;
/*! Rows and keys from which on tiles pay. */
constexpr int64_t kLeastRows = 32, kLeastKeys = 16;

}  // namespace

bool TilesPay(const AttentionAttrs& attrs, int64_t rows) {
  return rows >= kLeastRows && attrs.n >= kLeastKeys && attrs.n < std::numeric_limits<int32_t>::max() - kKeysAtOnce &&
         HasTiles();
}

bool RunTiledAttention(const AttentionAttrs& attrs, const std::vector<AttentionUnit>& units, int threads) {
  const tiles::Frame frame(attrs);
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
      const Range part = Part(rows, kQueries, static_cast<int>(parts), static_cast<int>(number / count));
      if (part.size > 0 && !tiles::Attend(frame, units[number % count], part)) all = false;
    }
  });
  return all;
}
#else
bool TilesPay(const AttentionAttrs&, int64_t) { return false; }
bool RunTiledAttention(const AttentionAttrs&, const std::vector<AttentionUnit>&, int) { return false; }
#endif

}  // namespace uir::library
