// SPDX-License-Identifier: Apache-2.0
// Loops of exponentials by hand: what exp_ceiling.py compiles for this CPU.
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#ifdef __AVX512F__
typedef __m512 Vector;
constexpr int kLanes = 16, kAtOnce = 4;
static inline Vector set(float x) { return _mm512_set1_ps(x); }
static inline Vector load(const float* p) { return _mm512_loadu_ps(p); }
static inline void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
static inline void stream(float* p, Vector x) { _mm512_stream_ps(p, x); }
static inline Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
static inline Vector sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
static inline Vector mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
static inline Vector div(Vector a, Vector b) { return _mm512_div_ps(a, b); }
static inline Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
static inline Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
static inline Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
// 2**n of an integer that stands in the last bits of a float.
static inline Vector power(Vector bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(bits), 23));
}
#else
typedef __m256 Vector;
constexpr int kLanes = 8, kAtOnce = 2;
static inline Vector set(float x) { return _mm256_set1_ps(x); }
static inline Vector load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
static inline void stream(float* p, Vector x) { _mm256_stream_ps(p, x); }
static inline Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
static inline Vector sub(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
static inline Vector mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
static inline Vector div(Vector a, Vector b) { return _mm256_div_ps(a, b); }
static inline Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
static inline Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
static inline Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
static inline Vector power(Vector bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(bits), 23));
}
#endif

constexpr float kLowest = -87.3f;
constexpr int kStep = kLanes * kAtOnce, kLine = 16, kInFirstCache = 2048;

// Lines of the next row, and those that this one is written to: prefetchers stop at the end of a page.
struct Ahead {
  const float* read;
  const float* written;
  // Whether the first cache has no room for them.
  bool second;

  void fetch(long at) const {
    for (int i = 0; i < kStep; i += kLine) {
      if (read) second ? __builtin_prefetch(read + at + i, 0, 2) : __builtin_prefetch(read + at + i, 0, 3);
      if (written) __builtin_prefetch(written + at + i, 1, 3);
    }
  }
};

// exp(x), -87.3 <= x <= 88: x = n ln 2 + r, a polynomial of r, and 2**n.
static inline Vector exponential(Vector x) {
  // The sum has n + 127 in its last bits.
  const Vector magic = set(12582912.0f + 127.0f);
  const Vector bits = fma(x, set(1.44269504f), magic), n = sub(bits, magic);
  const Vector r = fma(n, set(-0.693359375f), x), s = fma(n, set(2.12194440e-4f), r);
  Vector p = fma(s, set(1.0f / 720), set(1.0f / 120));
  p = fma(s, p, set(1.0f / 24));
  p = fma(s, p, set(1.0f / 6));
  p = fma(s, p, set(0.5f));
  p = fma(s, p, set(1.0f));
  p = fma(s, p, set(1.0f));
  return mul(p, power(bits));
}

static inline Vector shifted(Vector x, Vector most) { return exponential(max(sub(x, most), set(kLowest))); }

template <class Joined>
static float joined(Vector x, Joined join) {
  float lanes[kLanes];
  store(lanes, x);
  for (int at = 1; at < kLanes; ++at) lanes[0] = join(lanes[0], lanes[at]);
  return lanes[0];
}

static float largest(const Vector* found) {
  Vector all = found[0];
  for (int at = 1; at < kAtOnce; ++at) all = max(all, found[at]);
  return joined(all, [](float a, float b) { return std::max(a, b); });
}

static float total(const Vector* found) {
  Vector all = found[0];
  for (int at = 1; at < kAtOnce; ++at) all = add(all, found[at]);
  return joined(all, [](float a, float b) { return a + b; });
}

// value(column) of every column, many vectors at once; rest(column) of what fills no vectors.
template <class Value, class Rest>
static inline void columns(long count, Value value, Rest rest) {
  long at = 0;
  for (; at + kStep <= count; at += kStep) value(at);
  for (; at < count; ++at) rest(at);
}

static float maximum(const float* x, long count) {
  Vector found[kAtOnce];
  for (auto& each : found) each = set(-std::numeric_limits<float>::infinity());
  float rest = -std::numeric_limits<float>::infinity();
  columns(
      count,
      [&](long at) {
        for (int i = 0; i < kAtOnce; ++i) found[i] = max(found[i], load(x + at + i * kLanes));
      },
      [&](long at) { rest = std::max(rest, x[at]); });
  return std::max(rest, largest(found));
}

// The sum of exp(x - most), kept in `kept` where it is somewhere.
template <bool keeps>
static inline float exponentials(const float* x, float most, long count, float* kept, Ahead ahead) {
  Vector sums[kAtOnce];
  for (auto& each : sums) each = set(0.0f);
  const Vector all = set(most);
  float rest = 0.0f;
  columns(
      count,
      [&](long at) {
        ahead.fetch(at);
        Vector found[kAtOnce];
        for (int i = 0; i < kAtOnce; ++i) found[i] = shifted(load(x + at + i * kLanes), all);
        for (int i = 0; i < kAtOnce; ++i) {
          if (keeps) store(kept + at + i * kLanes, found[i]);
          sums[i] = add(sums[i], found[i]);
        }
      },
      [&](long at) {
        const float found = std::exp(x[at] - most);
        if (keeps) kept[at] = found;
        rest += found;
      });
  return rest + total(sums);
}

// a x + b into a row, past the caches where it streams.
static void line(float* out, const float* x, float a, float b, long count, bool streams) {
  const Vector times = set(a), plus = set(b);
  const long past = reinterpret_cast<size_t>(out) / sizeof(float) % kLanes;
  const long head = streams ? std::min((kLanes - past) % kLanes, count) : 0;
  for (long at = 0; at < head; ++at) out[at] = a * x[at] + b;
  columns(
      count - head,
      [&](long at) {
        for (int i = 0; i < kAtOnce; ++i) {
          const long place = head + at + i * kLanes;
          const Vector found = fma(load(x + place), times, plus);
          streams ? stream(out + place, found) : store(out + place, found);
        }
      },
      [&](long at) { out[head + at] = a * x[head + at] + b; });
}

// row(number, memory of one row) of every row, on all threads.
template <class Row>
static void rows(long count, long width, long threads, Row row) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> memory(width);
#pragma omp for schedule(static)
    for (long at = 0; at < count; ++at) row(at, memory.data());
    _mm_sfence();
  }
}

extern "C" void softmax(float* out, const float* x, long count, long width, long streams, long threads) {
  rows(count, width, threads, [=](long at, float* memory) {
    const float* row = x + at * width;
    const Ahead ahead{row + width, streams ? nullptr : out + at * width, width > kInFirstCache};
    const float sum = exponentials<true>(row, maximum(row, width), width, memory, ahead);
    line(out + at * width, memory, 1.0f / sum, 0.0f, width, streams);
  });
}

// softmax(x / 8 + mask); `same` rows of x follow each other that have one row of the mask, which then repeats.
extern "C" void masked_softmax(float* out, const float* x, const float* mask, long count, long width, long same,
                               long masks, long streams, long threads) {
  rows(count, width, threads, [=](long at, float* memory) {
    const float *row = x + at * width, *added = mask + at / same % masks * width;
    Vector found[kAtOnce];
    for (auto& each : found) each = set(-std::numeric_limits<float>::infinity());
    float most = -std::numeric_limits<float>::infinity();
    columns(
        width,
        [&](long column) {
          for (int i = 0; i < kAtOnce; ++i) {
            const long place = column + i * kLanes;
            const Vector value = fma(load(row + place), set(0.125f), load(added + place));
            store(memory + place, value);
            found[i] = max(found[i], value);
          }
        },
        [&](long column) {
          memory[column] = row[column] * 0.125f + added[column];
          most = std::max(most, memory[column]);
        });
    most = std::max(most, largest(found));
    const Ahead ahead{row + width, streams ? nullptr : out + at * width, width > kInFirstCache};
    const float sum = exponentials<true>(memory, most, width, memory, ahead);
    line(out + at * width, memory, 1.0f / sum, 0.0f, width, streams);
  });
}

// In chunks of the first cache a maximum and a sum; then the row, which the second cache still has.
extern "C" void log_softmax(float* out, const float* x, long count, long width, long streams, long threads) {
  constexpr long kChunk = 2048;
  rows(count, 0, threads, [=](long at, float*) {
    const float* row = x + at * width;
    float most = -std::numeric_limits<float>::infinity(), sum = 0.0f;
    for (long begin = 0; begin < width; begin += kChunk) {
      const long length = std::min(kChunk, width - begin);
      const float found = std::max(most, maximum(row + begin, length));
      sum = sum * std::exp(most - found) + exponentials<false>(row + begin, found, length, nullptr, {});
      most = found;
    }
    line(out + at * width, row, 1.0f, -(most + std::log(sum)), width, streams);
  });
}

// up * gate / (1 + exp(-gate))
extern "C" void swiglu(float* out, const float* gate, const float* up, long count, long width, long streams,
                       long threads) {
  const bool past_caches = streams && width % kLanes == 0;
  rows(count, 0, threads, [=](long row, float*) {
    const float *g = gate + row * width, *u = up + row * width;
    float* o = out + row * width;
    columns(
        width,
        [=](long at) {
          Vector found[kAtOnce];
          for (int i = 0; i < kAtOnce; ++i) {
            const Vector x = sub(set(0.0f), load(g + at + i * kLanes));
            found[i] = exponential(max(min(x, set(88.0f)), set(kLowest)));
          }
          for (int i = 0; i < kAtOnce; ++i) {
            const long place = at + i * kLanes;
            const Vector value = div(mul(load(g + place), load(u + place)), add(set(1.0f), found[i]));
            past_caches ? stream(o + place, value) : store(o + place, value);
          }
        },
        [=](long at) { o[at] = u[at] * g[at] / (1.0f + std::exp(-g[at])); });
  });
}
