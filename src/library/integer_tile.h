// SPDX-License-Identifier: Apache-2.0
// Rows of 16-bit numbers by a panel of a weight: sums in 32 bits, and what becomes of them. No guard: included for
// every width, in a namespace and for instructions of its own. Products of two 16-bit numbers are summed in 32 bits at
// once, so that nothing saturates on the way; a sum of more than 32 bits wraps around, as int32 does everywhere.

typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));
typedef Ints UnalignedInts __attribute__((aligned(1)));
typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef Vector UnalignedVector __attribute__((aligned(1)));
constexpr int kVectors = kIntegerColumns / kLanes;

/*! Pairs of numbers of as many outputs as there are lanes. */
template <typename Entry>
UIR_INLINE void Load(const Entry* from, Ints& pairs) {
#if UIR_VECTORS == 512
  if constexpr (sizeof(Entry) == 1) {
    pairs = reinterpret_cast<Ints>(_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
    return;
  }
#elif UIR_VECTORS == 256
  if constexpr (sizeof(Entry) == 1) {
    pairs = reinterpret_cast<Ints>(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    return;
  }
#else
  if constexpr (sizeof(Entry) == 1) {
    for (int lane = 0; lane < kLanes; ++lane) {
      pairs[lane] = static_cast<int32_t>(static_cast<uint16_t>(from[2 * lane]) |
                                         static_cast<uint32_t>(static_cast<uint16_t>(from[2 * lane + 1])) << 16);
    }
    return;
  }
#endif
  pairs = *reinterpret_cast<const UnalignedInts*>(from);
}

/*! sums += the products of two numbers each, exactly. */
UIR_INLINE void AddProducts(Ints& sums, const Ints& pairs, int32_t two) {
#if UIR_VECTORS == 512 && UIR_DOTS
  sums = reinterpret_cast<Ints>(
      _mm512_dpwssd_epi32(reinterpret_cast<__m512i>(sums), reinterpret_cast<__m512i>(pairs), _mm512_set1_epi32(two)));
#elif UIR_VECTORS == 512
  sums += reinterpret_cast<Ints>(_mm512_madd_epi16(reinterpret_cast<__m512i>(pairs), _mm512_set1_epi32(two)));
#elif UIR_VECTORS == 256
  sums += reinterpret_cast<Ints>(_mm256_madd_epi16(reinterpret_cast<__m256i>(pairs), _mm256_set1_epi32(two)));
#else
  typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));  // which wrap around
  const Ints low = pairs << 16 >> 16, high = pairs >> 16;
  sums = reinterpret_cast<Ints>(reinterpret_cast<Bits>(sums) + reinterpret_cast<Bits>(low * int32_t{int16_t(two)}) +
                                reinterpret_cast<Bits>(high * (two >> 16)));
#endif
}

/*! 16 whole numbers of 32 bits as bytes: their lowest 8 bits. */
UIR_INLINE void PutBytes(const Ints* whole, char* to) {
#if UIR_VECTORS == 512
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(whole[0])));
#elif UIR_VECTORS == 256
  const __m256i low = _mm256_set1_epi32(255);
  const __m256i pairs = _mm256_packus_epi32(_mm256_and_si256(reinterpret_cast<__m256i>(whole[0]), low),
                                            _mm256_and_si256(reinterpret_cast<__m256i>(whole[1]), low));
  const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
#else
  for (int v = 0; v < kVectors; ++v) {
    for (int lane = 0; lane < kLanes; ++lane) to[v * kLanes + lane] = static_cast<char>(whole[v][lane]);
  }
#endif
}

/*! The results of a row in one panel, of which `count` outputs exist. */
template <IntegerResult kResult>
UIR_INLINE void FinishRow(const Ending& ending, const Ints* sums, int64_t place, int64_t column, int64_t count) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the nearest integer, halves to even
  constexpr int kSize = kResult == IntegerResult::kBytes ? 1 : 4;
  Ints whole[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = column + v * kLanes;
    whole[v] = sums[v] + *reinterpret_cast<const UnalignedInts*>(ending.start + first);
    if constexpr (kResult != IntegerResult::kSums) {
      Vector x = __builtin_convertvector(whole[v], Vector);
      x = x * *reinterpret_cast<const UnalignedVector*>(ending.factors + first);
      x = x + *reinterpret_cast<const UnalignedVector*>(ending.terms + first);
      x = x < ending.low ? Vector{} + ending.low : x;
      x = x > ending.high ? Vector{} + ending.high : x;
      whole[v] = reinterpret_cast<Ints>(x);
      if constexpr (kResult == IntegerResult::kBytes) {
        whole[v] = reinterpret_cast<Ints>(x + kRound) - 0x4b400000 + ending.zero;
      }
    }
  }
  char part[kIntegerColumns * 4];
  char* to = count == kIntegerColumns ? ending.out + place * kSize : part;
  if constexpr (kResult == IntegerResult::kBytes) {
    PutBytes(whole, to);
  } else {
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<UnalignedInts*>(to + v * kLanes * 4) = whole[v];
  }
  if (count != kIntegerColumns) std::memcpy(ending.out + place * kSize, part, count * kSize);
}

template <int kRows, IntegerResult kResult>
UIR_INLINE void Finish(const Ending& ending, const Ints (&sums)[kRows][kVectors], int64_t row, int64_t column) {
  const int64_t count = std::min(kIntegerColumns, ending.columns - column);
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    FinishRow<kResult>(ending, sums[r], (row + r) * ending.columns + column, column, count);
  }
}

/*! Rows, each `length` numbers (even) after the one before, by a panel. */
template <int kRows, typename Entry>
void RowsByPanel(const int16_t* rows, int64_t length, const char* panel, const Ending& ending, int64_t row,
                 int64_t column) {
  Ints sums[kRows][kVectors] = {};
  const Entry* from = reinterpret_cast<const Entry*>(panel);
  for (int64_t k = 0; k < length; k += 2, from += 2 * kIntegerColumns) {
    Ints pairs[kVectors];
    for (int v = 0; v < kVectors; ++v) Load(from + 2 * v * kLanes, pairs[v]);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      int32_t two;
      std::memcpy(&two, rows + r * length + k, 4);
      for (int v = 0; v < kVectors; ++v) AddProducts(sums[r][v], pairs[v], two);
    }
  }
  switch (ending.result) {
    case IntegerResult::kSums:
      return Finish<kRows, IntegerResult::kSums>(ending, sums, row, column);
    case IntegerResult::kFloats:
      return Finish<kRows, IntegerResult::kFloats>(ending, sums, row, column);
    case IntegerResult::kBytes:
      return Finish<kRows, IntegerResult::kBytes>(ending, sums, row, column);
  }
}

/*! Bytes without their zero point, in 16 bits. */
template <typename Byte>
void Widen(const Byte* from, int64_t count, int16_t zero, int16_t* to) {
  for (int64_t j = 0; j < count; ++j) to[j] = static_cast<int16_t>(from[j] - zero);
}

template <int kRows>
constexpr RowsFunctions FunctionsOf() {
  return {kRows, {RowsByPanel<kRows, int8_t>, RowsByPanel<kRows, int16_t>}};
}
