// SPDX-License-Identifier: Apache-2.0
// Some rows number by number, as tiles of products read them. No guard: it is included in a namespace and for
// instructions of its own.

typedef float Four __attribute__((vector_size(16)));
typedef float UnalignedFour __attribute__((vector_size(16), aligned(4)));

/*! Pairs of two vectors of four: kFirst of `a`, then kSecond of `b`. */
template <int kFirst, int kSecond>
UIR_INLINE Four PairsOf(const Four& a, const Four& b) {
  return __builtin_shufflevector(a, b, 2 * kFirst, 2 * kFirst + 1, 4 + 2 * kSecond, 5 + 2 * kSecond);
}

/*! Four numbers of each of two rows, number by number. */
struct TwoRows {
  Four first, last;
  UIR_INLINE TwoRows(const float* row, const float* next) {
    const Four a = *reinterpret_cast<const UnalignedFour*>(row), b = *reinterpret_cast<const UnalignedFour*>(next);
    first = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    last = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  }
};

UIR_INLINE void PutFour(float* to, const Four& x) { *reinterpret_cast<UnalignedFour*>(to) = x; }

/*! Four numbers of each of four rows from number `at` on, number by number, `apart` floats from one to the next. */
UIR_INLINE void TurnFour(const float* from, int64_t row, float* to, int64_t apart) {
  const TwoRows a(from, from + row), b(from + 2 * row, from + 3 * row);
  PutFour(to, PairsOf<0, 0>(a.first, b.first));
  PutFour(to + apart, PairsOf<1, 1>(a.first, b.first));
  PutFour(to + 2 * apart, PairsOf<0, 0>(a.last, b.last));
  PutFour(to + 3 * apart, PairsOf<1, 1>(a.last, b.last));
}

/*! Four numbers of each of kRows rows, number by number. */
template <int kRows>
UIR_INLINE void PackFour(const float* from, int64_t row, float* to) {
  if constexpr (kRows == 6) {  // two numbers of all rows are three whole vectors
    const TwoRows a(from, from + row), b(from + 2 * row, from + 3 * row), c(from + 4 * row, from + 5 * row);
    PutFour(to, PairsOf<0, 0>(a.first, b.first));
    PutFour(to + 4, PairsOf<0, 1>(c.first, a.first));
    PutFour(to + 8, PairsOf<1, 1>(b.first, c.first));
    PutFour(to + 12, PairsOf<0, 0>(a.last, b.last));
    PutFour(to + 16, PairsOf<0, 1>(c.last, a.last));
    PutFour(to + 20, PairsOf<1, 1>(b.last, c.last));
  } else {
    constexpr int kWhole = kRows / 4 * 4;
#pragma GCC unroll 8
    for (int r = 0; r < kWhole; r += 4) TurnFour(from + r * row, row, to + r, kRows);
    if constexpr (kRows - kWhole == 1) {
      for (int at = 0; at < 4; ++at) to[at * kRows + kWhole] = from[kWhole * row + at];
    } else if constexpr (kRows > kWhole) {  // some rows again
      TurnFour(from + (kRows - 4) * row, row, to + kRows - 4, kRows);
    }
  }
}

//! What is laid out next, and where it goes, come closer: a line of each row was written by another core, or read there
//! at the call before.
template <int kRows>
UIR_INLINE void FetchPacked(const float* from, int64_t row, float* to) {
  constexpr int kNumbers = kLine / sizeof(float);
  for (int r = 0; r < kRows; ++r) {
    __builtin_prefetch(from + r * row + 2 * kNumbers, 0, 3);
    __builtin_prefetch(to + (kRows + r) * kNumbers, 1, 3);
  }
}

/*! kRows rows of `depth` numbers, `row` floats apart, side by side: [depth, kRows]. */
template <int kRows>
void Pack(const float* from, int64_t row, int64_t depth, float* to) {
  int64_t k = 0;
  if constexpr (kRows >= 8) {
    for (; k + 16 <= depth; k += 16, to += 16 * kRows) {
      FetchPacked<kRows>(from + k, row, to);
      for (int at = 0; at < 16; at += 4) PackFour<kRows>(from + k + at, row, to + at * kRows);
    }
  }
  if constexpr (kRows >= 4) {
    for (; k + 4 <= depth; k += 4, to += 4 * kRows) PackFour<kRows>(from + k, row, to);
  }
  for (; k < depth; ++k, to += kRows) {
    for (int r = 0; r < kRows; ++r) to[r] = from[r * row + k];
  }
}
