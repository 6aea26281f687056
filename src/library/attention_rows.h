// SPDX-License-Identifier: Apache-2.0
// Rows of queries over blocks of keys, for vectors of kLanes floats. No guard: attention.cc includes this for every
// width, each in a namespace and for instructions of its own. Keys and values are of a type, sums in float32.

#include "library/vector_math.h"
//
#include "library/half_vectors.h"

/*! Vectors of sums of a row that stay in registers, beside those of the other rows of a tile. */
constexpr int kWide = kLanes == 16 ? 4 : 2;

/*! Keys whose scores are summed at one time, and rows, so that their sums stay in registers. */
constexpr int kTogether = 4, kRowsTogether = kLanes == 16 ? 6 : 2;

/*! Half of a vector added to the other half, and so on, down to halves of kEnd numbers. */
template <int kHalf = kLanes / 2, int kEnd = 0>
UIR_INLINE void Fold(Vector& x) {
  if constexpr (kHalf > kEnd) {
    Bits other = {};
    for (uint32_t lane = 0; lane < kLanes; ++lane) other[lane] = (lane + kHalf) % kLanes;
    x += __builtin_shuffle(x, other);
    Fold<kHalf / 2, kEnd>(x);
  }
}

UIR_INLINE float SumOf(Vector x) {
  Fold(x);
  return x[0];
}

/*! Of two vectors, sums of lanes kStep apart: those of the one where a lane's number has no kStep, else the other's. */
template <int kStep>
UIR_INLINE void Woven(Vector& one, const Vector& other) {
  Bits here = {}, there = {};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t from = lane & kStep ? kLanes : 0;
    here[lane] = from + lane, there[lane] = from + (lane ^ kStep);
  }
  one = __builtin_shuffle(one, other, here) + __builtin_shuffle(one, other, there);
}

/*! The sums of four vectors, side by side. */
UIR_INLINE void FourSums(Vector (&x)[kTogether], float* sums) {
  Woven<1>(x[0], x[1]);
  Woven<1>(x[2], x[3]);
  Woven<2>(x[0], x[2]);
  Fold<kLanes / 2, 2>(x[0]);
  for (int at = 0; at < kTogether; ++at) sums[at] = x[0][at];
}

UIR_INLINE float MostOf(const Vector& x) {
  float most = x[0];
  for (int lane = 1; lane < kLanes; ++lane) most = x[lane] > most ? x[lane] : most;
  return most;
}

/*! scores[row][key] of rows from kFirst to kEnd, whose keys are read as they lie. */
template <DType kType, int kFirst, int kEnd>
UIR_INLINE void DirectScores(const AttentionTile& tile, int64_t count, float* scores) {
  constexpr int kRows = std::min(kRowsTogether, kEnd - kFirst);
  constexpr int64_t kSize = SizeOf(kType);
  const int64_t d = tile.attrs.d, whole = d / kLanes * kLanes, row_bytes = tile.key_row * kSize;
  const AttentionRow* rows = tile.rows + kFirst;
  for (int64_t j = 0; j < count; j += kTogether) {
    const char* keys[kTogether];  // beyond the last the last one, whose scores nobody reads
    for (int i = 0; i < kTogether; ++i) keys[i] = tile.keys + std::min(j + i, count - 1) * row_bytes;
    Vector sums[kRows][kTogether] = {};
    for (int64_t at = 0; at < whole; at += kLanes) {
      Vector some[kTogether];
      for (int i = 0; i < kTogether; ++i) {
        __builtin_prefetch(keys[i] + kAhead * row_bytes + at * kSize);
        Numbers<kType>(keys[i] + at * kSize, some[i]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vector query = *reinterpret_cast<const Unaligned*>(rows[r].query + at);
#pragma GCC unroll 4
        for (int i = 0; i < kTogether; ++i) sums[r][i] += some[i] * query;
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      float* to = scores + (kFirst + r) * kKeys + j;
      FourSums(sums[r], to);
      for (int64_t at = whole; at < d; ++at) {
        for (int i = 0; i < kTogether; ++i) to[i] += library::Load<float>(keys[i], kType, at) * rows[r].query[at];
      }
    }
  }
  if constexpr (kFirst + kRows < kEnd) DirectScores<kType, kFirst + kRows, kEnd>(tile, count, scores);
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

/*! Lanes before `begin` and from `end` on hold what a softmax leaves out. */
inline __attribute__((noinline)) void Close(Vector& x, int64_t begin, int64_t end) {
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    if (lane < begin || lane >= end) x[lane] = -std::numeric_limits<float>::infinity();
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
      GetAs(tile.mask_type, row.mask, first + j, count - j, other);
      x += other;
    }
    const int64_t begin = row.begin - first - j, end = std::min(count, row.end - first) - j;
    if (begin > 0 || end < kLanes) {
      Vector some = x;  // of its own: what is written lane by lane lies in memory
      Close(some, begin, end);
      x = some;
    }
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
template <DType kType, int kRows>
UIR_INLINE void AddValues(const AttentionTile& tile, int64_t count, const float* weights, const float* kept) {
  constexpr int64_t kSize = SizeOf(kType);
  const int64_t e = tile.attrs.e, row_bytes = tile.value_row * kSize;
  int64_t at = 0;
  for (; at + kWide * kLanes <= e; at += kWide * kLanes) {
    Vector sums[kRows][kWide];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kWide; ++v) {
        sums[r][v] = *reinterpret_cast<const Unaligned*>(tile.sums + r * e + at + v * kLanes) * kept[r];
      }
    }
    const char* value = tile.values + at * kSize;
    for (int64_t j = 0; j < count; ++j, value += row_bytes) {
      Vector some[kWide];
      for (int v = 0; v < kWide; ++v) {
        __builtin_prefetch(value + kAhead * row_bytes + v * kLanes * kSize);
        Numbers<kType>(value + v * kLanes * kSize, some[v]);
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
      for (int64_t j = 0; j < count; ++j) {
        sum += library::Load<float>(tile.values + j * row_bytes, kType, at) * weights[r * kKeys + j];
      }
      tile.sums[r * e + at] = sum;
    }
  }
}

/*! One block of keys of some rows. */
template <DType kType, int kRows>
void AttendBlock(const AttentionTile& tile, int64_t first, int64_t count) {
  alignas(64) float scores[kRows * kKeys];
  float kept[kRows];
  if (tile.turned) {
    TurnedScores<kRows>(tile, scores);
  } else {
    DirectScores<kType, 0, kRows>(tile, count, scores);
  }
  for (int r = 0; r < kRows; ++r) {
    kept[r] = Weigh(tile, tile.rows[r], first, count, scores + r * kKeys, tile.peaks + r, tile.totals + r);
  }
  AddValues<kType, kRows>(tile, count, scores, kept);
}

template <DType kType>
constexpr Blocks BlocksOf() {
  return {AttendBlock<kType, 1>, AttendBlock<kType, 2>, AttendBlock<kType, 3>,
          AttendBlock<kType, 4>, AttendBlock<kType, 5>, AttendBlock<kType, 6>};
}

constexpr BlocksByType kBlocks = {BlocksOf<DType::kF16>(), BlocksOf<DType::kBF16>(), BlocksOf<DType::kF32>()};
