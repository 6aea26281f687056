// SPDX-License-Identifier: Apache-2.0
// Rows of queries over blocks of keys, for vectors of kLanes floats. No guard: attention.cc includes this for every
// width, each in a namespace and for instructions of its own.

#include "library/vector_math.h"

/*! Vectors of sums of a row that stay in registers, beside those of the other rows of a tile. */
constexpr int kWide = kLanes == 16 ? 4 : 2;

/*! Half of a vector added to the other half, and so on. */
template <int kHalf = kLanes / 2>
UIR_INLINE float SumOf(const Vector& x) {
  if constexpr (kHalf == 0) {
    return x[0];
  } else {
    Bits other = {};
    for (uint32_t lane = 0; lane < kLanes; ++lane) other[lane] = (lane + kHalf) % kLanes;
    return SumOf<kHalf / 2>(x + __builtin_shuffle(x, other));
  }
}

UIR_INLINE float MostOf(const Vector& x) {
  float most = x[0];
  for (int lane = 1; lane < kLanes; ++lane) most = x[lane] > most ? x[lane] : most;
  return most;
}

/*! scores[row][key] of a few rows, whose keys are read as they lie. */
template <int kRows>
UIR_INLINE void DirectScores(const AttentionTile& tile, int64_t first, int64_t count, float* scores) {
  const int64_t d = tile.attrs.d, whole = d / kLanes * kLanes;
  for (int64_t j = 0; j < count; ++j) {
    const float* key = tile.keys + (first + j) * tile.key_row;
    Vector sums[kRows] = {};
    for (int64_t at = 0; at < whole; at += kLanes) {
      __builtin_prefetch(key + kAhead * tile.key_row + at);
      const Vector some = *reinterpret_cast<const Unaligned*>(key + at);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r] += some * *reinterpret_cast<const Unaligned*>(tile.rows[r].query + at);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      float sum = SumOf(sums[r]);
      for (int64_t at = whole; at < d; ++at) sum += key[at] * tile.rows[r].query[at];
      scores[r * kKeys + j] = sum;
    }
  }
}

/*! The same of keys that lie turned: [d, kKeys]. */
template <int kRows>
UIR_INLINE void TurnedScores(const AttentionTile& tile, float* scores) {
  for (int64_t j = 0; j < kKeys; j += kWide * kLanes) {
    Vector sums[kRows][kWide] = {};
    const float* keys = tile.turned + j;
    for (int64_t at = 0; at < tile.attrs.d; ++at, keys += kKeys) {
      Vector some[kWide];
      for (int v = 0; v < kWide; ++v) some[v] = *reinterpret_cast<const Unaligned*>(keys + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const float factor = tile.rows[r].query[at];
#pragma GCC unroll 4
        for (int v = 0; v < kWide; ++v) sums[r][v] += some[v] * factor;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kWide; ++v) {
        *reinterpret_cast<Unaligned*>(scores + r * kKeys + j + v * kLanes) = sums[r][v];
      }
    }
  }
}

//! Scores become weights; the row's greatest score and sum so far go on. What is returned scales what was summed
//! before.
inline float Weigh(const AttentionTile& tile, const AttentionRow& row, int64_t first, int64_t count, float* scores,
                   float* peak, float* total) {
  const float lowest = -std::numeric_limits<float>::infinity();
  const auto scale = static_cast<float>(tile.attrs.scale);
  Vector most = Vector{} + lowest;
  for (int64_t j = 0; j < count; j += kLanes) {
    Vector x = *reinterpret_cast<const Unaligned*>(scores + j) * scale, other = {};
    if (row.mask) {
      Get(other, row.mask + first + j, count - j);
      x += other;
    }
    for (int64_t lane = count - j; lane < kLanes; ++lane) x[lane] = lowest;
    *reinterpret_cast<Unaligned*>(scores + j) = x;
    most = x > most || x != x ? x : most;
  }
  const float before = *peak, now = std::max(before, MostOf(most));
  *peak = now;
  Vector sum = {};
  for (int64_t j = 0; j < count; j += kLanes) {
    const Vector x = *reinterpret_cast<const Unaligned*>(scores + j);
    Vector weight = x - now;
    const Vector far = weight;
    Exp(weight);
    weight = far < -87.3f || x == lowest ? Vector{} : weight;
    *reinterpret_cast<Unaligned*>(scores + j) = weight;
    sum += weight;
  }
  const float kept = before == lowest ? 0.0f : std::exp(before - now);
  *total = *total * kept + SumOf(sum);
  return kept;
}

/*! sums[row] = sums[row] * kept[row] + weights[row] by values. */
template <int kRows>
UIR_INLINE void AddValues(const AttentionTile& tile, int64_t first, int64_t count, const float* weights,
                          const float* kept) {
  const int64_t e = tile.attrs.e;
  const float* values = tile.values + first * tile.value_row;
  int64_t at = 0;
  for (; at + kWide * kLanes <= e; at += kWide * kLanes) {
    Vector sums[kRows][kWide];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kWide; ++v) {
        sums[r][v] = *reinterpret_cast<const Unaligned*>(tile.sums + r * e + at + v * kLanes) * kept[r];
      }
    }
    const float* value = values + at;
    for (int64_t j = 0; j < count; ++j, value += tile.value_row) {
      Vector some[kWide];
      for (int v = 0; v < kWide; ++v) {
        __builtin_prefetch(value + kAhead * tile.value_row + v * kLanes);
        some[v] = *reinterpret_cast<const Unaligned*>(value + v * kLanes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kWide; ++v) sums[r][v] += some[v] * weights[r * kKeys + j];
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kWide; ++v) {
        *reinterpret_cast<Unaligned*>(tile.sums + r * e + at + v * kLanes) = sums[r][v];
      }
    }
  }
  for (; at < e; ++at) {
    for (int r = 0; r < kRows; ++r) {
      float sum = tile.sums[r * e + at] * kept[r];
      for (int64_t j = 0; j < count; ++j) sum += values[j * tile.value_row + at] * weights[r * kKeys + j];
      tile.sums[r * e + at] = sum;
    }
  }
}

/*! One block of keys of some rows. */
template <int kRows>
void AttendBlock(const AttentionTile& tile, int64_t first, int64_t count) {
  alignas(64) float scores[kRows * kKeys];
  float kept[kRows];
  if (tile.turned) {
    TurnedScores<kRows>(tile, scores);
  } else {
    DirectScores<kRows>(tile, first, count, scores);
  }
  for (int r = 0; r < kRows; ++r) {
    kept[r] = Weigh(tile, tile.rows[r], first, count, scores + r * kKeys, tile.peaks + r, tile.totals + r);
  }
  AddValues<kRows>(tile, first, count, scores, kept);
}

constexpr BlockFunction kBlocks[kTileRows] = {AttendBlock<1>, AttendBlock<2>, AttendBlock<3>,
                                              AttendBlock<4>, AttendBlock<5>, AttendBlock<6>};
