// SPDX-License-Identifier: Apache-2.0
#include "library/tile_attention.h"

#include "library/tile_product.h"

#ifdef UIR_TILES
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/rounding.h"
#include "library/attention_parts.h"
#include "library/kernel.h"

namespace uir::library {

#ifdef UIR_TILES
namespace {

/*! Keys of a tile's scores at a time, and bytes of packed keys and values that stay in the cache. */
constexpr int kKeysAtOnce = 256;
constexpr int64_t kBlockBytes = 896 << 10;
/*! Powers of two between which numbers have pieces whose products, and the sums of them, are as exact as float32. */
constexpr int kLeast = -60, kLimit = 55;

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,amx-tile,amx-bf16")
namespace tiles {
constexpr int kLanes = 16, kVectors = 2;
#include "library/vector_math.h"
// behind what they need
#include "library/tile_pieces.h"
//
#include "library/attention_tile.h"

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
void PackQueries(const Frame& frame, const Tile& tile, char* to, Spread* spread) {
  const int64_t d = frame.attrs.d;
  for (int side = 0; side < kVectors; ++side) {
    const float* from[kLanes];
    const int some = RowsIn(tile, side);
    for (int r = 0; r < some; ++r) from[r] = tile.rows[side * kLanes + r].query;
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

/*! Some rows of a unit; false where a number has no pieces. */
bool Attend(const Frame& frame, const AttentionUnit& unit, const AttentionRow* rows, int64_t row_count) {
  const int64_t count = CeilDiv<int64_t>(row_count, kQueries), numbers = frame.width * 2 * kSide;
  const int64_t query_bytes = frame.depth * kStepBytes, block_steps = frame.block_keys / kDepth;
  const int64_t state_bytes = StateFloats(numbers) * sizeof(float);
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
  for (int64_t at = 0; at < row_count; at += kQueries) {
    const auto some = static_cast<int>(std::min<int64_t>(kQueries, row_count - at));
    char* queries = take(query_bytes);
    Tile tile = MakeTile(rows + at, some, numbers, reinterpret_cast<float*>(take(state_bytes)));
    begin = std::min(begin, tile.begin), end = std::max(end, tile.end);
    std::fill_n(tile.sums, numbers * kQueries, 0.0f);
    PackQueries(frame, tile, queries, &queries_spread);
    tile.queries = queries;
    made.push_back(tile);
  }
  if (!queries_spread.IsWithin(kLeast, kLimit)) return false;
  const Tiles tiles;
  for (int64_t block = begin; block < end; block += frame.block_keys) {
    const int64_t size = std::min(frame.block_keys, end - block);
    PackRows(reinterpret_cast<const float*>(unit.keys) + block * frame.key_row, frame.key_row, size, frame.attrs.d,
             keys, &keys_spread);
    PackValues(frame, reinterpret_cast<const float*>(unit.values) + block * frame.value_row, size, values,
               &values_spread);
    if (!keys_spread.IsWithin(kLeast, kLimit) || !values_spread.IsWithin(kLeast, kLimit)) return false;
    for (const Tile& tile : made) {
      for (int64_t first = block; first < block + size; first += kKeysAtOnce) {
        if (first + kKeysAtOnce <= tile.begin || tile.end <= first) continue;
        const int64_t open = std::min<int64_t>({kKeysAtOnce, tile.end - first, block + size - first});
        const int64_t steps = CeilDiv(open, kDepth), all = steps * kDepth, step = (first - block) / kDepth;
        Scores(frame, tile, keys + step * frame.depth * kStepBytes, steps, scores);
        if (frame.attrs.masked) AddMask(tile, first, open, scores);
        if (first < tile.all_from || tile.all_to < first + all)
          Close(tile, first, all, -std::numeric_limits<float>::infinity(), scores);
        if (frame.attrs.masked) {
          Weigh<true>(frame, tile, all, scores, weights);
        } else {
          Weigh<false>(frame, tile, all, scores, weights);
        }
        AddValues(frame, tile, values + step * frame.width * kStepBytes, weights, steps);
      }
    }
  }
  for (const Tile& tile : made) StoreRows(tile, frame.attrs.e, frame.attrs.safe);
  return true;
}
}  // namespace tiles
#pragma GCC pop_options

/*! Rows and keys from which on tiles pay. */
constexpr int64_t kLeastRows = 32, kLeastKeys = 16;

}  // namespace

bool TilesPay(const AttentionAttrs& attrs, int64_t rows) {
  return rows >= kLeastRows && attrs.n >= kLeastKeys && attrs.n < std::numeric_limits<int32_t>::max() - kKeysAtOnce &&
         HasTiles();
}

bool RunTiledAttention(const AttentionAttrs& attrs, const AttentionUnits& units, int threads) {
  const tiles::Frame frame(attrs);
  return RunParts(units, tiles::kQueries, threads,
                  [&](const AttentionPart& part) { return tiles::Attend(frame, part.unit, part.rows, part.count); });
}
#else
bool TilesPay(const AttentionAttrs&, int64_t) { return false; }
bool RunTiledAttention(const AttentionAttrs&, const AttentionUnits&, int) { return false; }
#endif

}  // namespace uir::library
