// SPDX-License-Identifier: Apache-2.0
// Few rows of x times codes of 4 bits as dot products of bytes (AVX512 VNNI). A group of x is a whole number of up to
// 22 bits and a sign, times a power of two: three digits of 8 bits with a sign. Sums of a group are exact, so that the
// result is no less exact than a sum in float32. See quantized_panels.h.

/*! x as digits: of a row with unit stride; false where a group has no such digits (infinite, NaN, or very small or
 * large). */
inline bool MakeDigits(const float* x, int64_t groups, int64_t length, const Digits& to) {
  for (int64_t group = 0, k = 0; group < groups; ++group) {
    __m512 most = _mm512_setzero_ps(), total = _mm512_setzero_ps();
    for (int64_t j = 0; j < length; j += 16) {
      const __m512 some = _mm512_loadu_ps(x + k + j);
      most = _mm512_max_ps(_mm512_abs_ps(some), most);
      total = _mm512_add_ps(total, some);
    }
    const float sum = _mm512_reduce_add_ps(total), largest = _mm512_reduce_max_ps(most);
    if (!(largest < 0x1p100f) || sum != sum || (largest < 0x1p-80f && largest > 0.0f)) return false;
    const int exponent = largest > 0.0f ? static_cast<int>(BitsOfFloat(largest) >> 23) - 126 : 0;
    const __m512 up = _mm512_set1_ps(FloatOfBits(static_cast<uint32_t>(22 - exponent + 127) << 23));
    const __m512i half = _mm512_set1_epi32(128);
    for (int64_t j = 0; j < length; j += 16, k += 16) {
      __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + k), up));
      for (int place = 0; place < 3; ++place) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to.places[place] + k), _mm512_cvtepi32_epi8(whole));
        whole = _mm512_srai_epi32(_mm512_add_epi32(whole, half), 8);
      }
    }
    to.powers[group] = FloatOfBits(static_cast<uint32_t>(exponent - 22 + 127) << 23);
    to.totals[group] = sum;
  }
  return true;
}

UIR_INLINE __m512i Four(const int8_t* digits) {
  int32_t four;
  std::memcpy(&four, digits, 4);
  return _mm512_set1_epi32(four);
}

/*! Rows of digits times some blocks. */
template <int kRows>
void DigitRows(const Panels& panels, const Operands& at, const Digits* digits, int64_t row, Range blocks) {
  constexpr int kParts = kRows == 1 ? 2 : 1;
  const __m512i low = _mm512_set1_epi32(0x0f0f0f0f);
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* group = panels.packed + block * panels.block_bytes;
    Vector sums[kRows][kVectors] = {};
    int64_t k = 0;
    for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
      __m512i parts[kRows][3][kParts];
      for (int r = 0; r < kRows; ++r) {
        for (int place = 0; place < 3; ++place) {
          for (int part = 0; part < kParts; ++part) parts[r][place][part] = _mm512_setzero_si512();
        }
      }
      for (int64_t word = 0; word < panels.words; ++word, k += 8) {
        const __m512i words = _mm512_loadu_si512(group + word * kBlock * 4);
        const __m512i first = _mm512_and_si512(words, low);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi32(words, 4), low);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
          for (int place = 0; place < 3; ++place) {
            const int8_t* here = digits[r].places[place] + k;
            __m512i* to = parts[r][place];
            to[0] = _mm512_dpbusd_epi32(to[0], first, Four(here));
            to[kParts - 1] = _mm512_dpbusd_epi32(to[kParts - 1], second, Four(here + 4));
          }
        }
      }
      Vector scale[kVectors], shift[kVectors];
      GroupOf(panels, group, panels.zero, scale, shift);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        __m512i places[3];
        for (int place = 0; place < 3; ++place) {
          places[place] = parts[r][place][0];
          if (kParts == 2) places[place] = _mm512_add_epi32(places[place], parts[r][place][kParts - 1]);
        }
        const __m512i lower = _mm512_add_epi32(_mm512_slli_epi32(places[1], 8), places[0]);
        const Vector sum = _mm512_cvtepi32_ps(lower) + 65536.0f * static_cast<Vector>(_mm512_cvtepi32_ps(places[2]));
        sums[r][0] += sum * (scale[0] * digits[r].powers[number]);
        if (panels.shifted) sums[r][0] += shift[0] * digits[r].totals[number];
      }
    }
    for (int r = 0; r < kRows; ++r) Store<kVectors>(panels.attrs, at, row + r, block * kBlock, sums[r]);
  }
}

/*! By the number of rows, less one. */
constexpr QuantizedKernels::Places kDigitRows[] = {DigitRows<1>, DigitRows<2>, DigitRows<3>, DigitRows<4>};
