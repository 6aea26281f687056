// SPDX-License-Identifier: Apache-2.0
// One row of x as digits (`Digits`) times codes of 4 bits, without instructions for dot products (AVX2): products are
// summed by pairs in 16 bits, which hold those of 32 codes (8 pairs of at most 2 * 15 * 128: 30720), then in 32. So
// sums of a group are exact, and no code is made a float. See quantized_panels.h.

/*! Words of a group whose products are summed in 16 bits. */
constexpr int kPairWords = 4;

/*! Sums of the places of a row's numbers, of a block's outputs. */
using PlaceSums = __m256i[3][kVectors];

/*! sums = products of kWords words from k on. */
template <int kWords>
UIR_INLINE void SumPairs(const char* codes, const Digits& x, int64_t k, PlaceSums& sums) {
  const __m256i low = _mm256_set1_epi8(15);
  for (auto& place : sums) std::fill(std::begin(place), std::end(place), _mm256_setzero_si256());
#pragma GCC unroll 8
  for (int half = 0; half < 2 * kWords; ++half) {
    __m256i some[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const char* here = codes + (half / 2 * kVectors + v) * 32;
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(here));
      some[v] = _mm256_and_si256(half % 2 == 0 ? bits : _mm256_srli_epi32(bits, 4), low);
    }
#pragma GCC unroll 3
    for (int place = 0; place < 3; ++place) {
      const __m256i four = FourBytes(x.places[place] + k + half * 4);
      for (int v = 0; v < kVectors; ++v) {
        sums[place][v] = _mm256_add_epi16(sums[place][v], _mm256_maddubs_epi16(some[v], four));
        __asm__("" : "+x"(sums[place][v]));  // added in another order they leave no registers for the others
      }
    }
  }
  for (auto& place : sums) {
    for (__m256i& sum : place) sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
  }
}

/*! The same of all words of a group. */
UIR_INLINE void SumGroup(const char* codes, int64_t words, const Digits& x, int64_t k, PlaceSums& sums) {
  if (words == kPairWords) return SumPairs<kPairWords>(codes, x, k, sums);
  for (auto& place : sums) std::fill(std::begin(place), std::end(place), _mm256_setzero_si256());
  for (int64_t word = 0; word < words;) {
    PlaceSums some;
    const bool whole = words - word >= kPairWords;
    if (whole) {
      SumPairs<kPairWords>(codes + word * kBlock * 4, x, k + word * 8, some);
    } else {
      SumPairs<1>(codes + word * kBlock * 4, x, k + word * 8, some);
    }
    word += whole ? kPairWords : 1;
    for (int place = 0; place < 3; ++place) {
      for (int v = 0; v < kVectors; ++v) sums[place][v] = _mm256_add_epi32(sums[place][v], some[place][v]);
    }
  }
}

/*! The row times some blocks. */
inline void DigitRow(const Panels& panels, const Operands& at, const Digits* x, int64_t row, Range blocks) {
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* group = panels.packed + block * panels.block_bytes;
    Vector sums[kVectors] = {};
    for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
      for (int64_t ahead = 0; ahead < panels.group_bytes; ahead += 64) __builtin_prefetch(group + kAheadBytes + ahead);
      PlaceSums whole;
      SumGroup(group, panels.words, *x, number * panels.attrs.weight.group, whole);
      Vector scale[kVectors], shift[kVectors];
      GroupOf(panels, group, panels.zero, scale, shift);
      for (int v = 0; v < kVectors; ++v) {
        const __m256i lower = _mm256_add_epi32(_mm256_slli_epi32(whole[1][v], 8), whole[0][v]);
        const auto upper = static_cast<Vector>(_mm256_cvtepi32_ps(whole[2][v]));
        const Vector sum = static_cast<Vector>(_mm256_cvtepi32_ps(lower)) + 65536.0f * upper;
        sums[v] += sum * (scale[v] * x->powers[number]);
        if (panels.shifted) sums[v] += shift[v] * x->totals[number];
      }
    }
    Store<kVectors>(panels.attrs, at, row, block * kBlock, sums);
  }
}

//! x as digits: of a row with unit stride; false where a group has none (infinite, NaN, or very small or large).
inline bool MakeDigits(const float* x, int64_t groups, int64_t length, const Digits& to) {
  const float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the nearest integer
  for (int64_t group = 0, k = 0; group < groups; ++group) {
    Vector most = {}, total = {};
    for (int64_t j = 0; j < length; j += kLanes) {
      const Vector some = *reinterpret_cast<const Unaligned*>(x + k + j);
      const Vector magnitude = some < 0.0f ? -some : some;
      most = magnitude > most ? magnitude : most;
      total += some;
    }
    float sum = 0.0f, largest = 0.0f;
    for (int lane = 0; lane < kLanes; ++lane) largest = std::max<float>(largest, most[lane]), sum += total[lane];
    if (!(largest < 0x1p100f) || sum != sum || (largest < 0x1p-80f && largest > 0.0f)) return false;
    const int exponent = largest > 0.0f ? static_cast<int>(BitsOfFloat(largest) >> 23) - 126 : 0;
    const float up = FloatOfBits(static_cast<uint32_t>(22 - exponent + 127) << 23);
    for (int64_t j = 0; j < length; j += kLanes, k += kLanes) {
      const Vector shifted = *reinterpret_cast<const Unaligned*>(x + k) * up + kRound;
      Ints whole = reinterpret_cast<Ints>(shifted) - 0x4b400000;
      for (int8_t* place : to.places) {
        *reinterpret_cast<UnalignedChars*>(place + k) = __builtin_convertvector(whole, Chars);
        whole = (whole + 128) >> 8;
      }
    }
    to.powers[group] = FloatOfBits(static_cast<uint32_t>(exponent - 22 + 127) << 23);
    to.totals[group] = sum;
  }
  return true;
}
