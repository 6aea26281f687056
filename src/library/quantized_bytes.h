// SPDX-License-Identifier: Apache-2.0
// Rows of x in bytes times codes: of each group a dot product of bytes, exact in 32 bits, then scales. See
// quantized_panels.h. A group of x is whole numbers from -127 to 127 times one number, the greatest over 127. Groups
// whose steps are large beside those of the row make most of the error: what bytes leave of them is a second digit.

typedef int8_t Chars __attribute__((vector_size(kLanes)));
typedef Chars UnalignedChars __attribute__((aligned(1)));

/*! A second digit is for groups whose step squared is so many times the mean of the row, and counts so many steps. */
constexpr float kFineFrom = 2.0f, kFineSteps = 254.0f;
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the nearest integer

UIR_INLINE int32_t Sum(const Ints& numbers) {
  int32_t sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += numbers[lane];
  return sum;
}

//! What the bytes of a group leave of x * up, as a second digit; their sum.
inline int32_t MakeRest(const float* x, int64_t length, float up, const int8_t* bytes, int8_t* rest) {
  const int64_t whole = length / kLanes * kLanes;
  Ints sums = {};
  for (int64_t j = 0; j < whole; j += kLanes) {
    const Vector first = __builtin_convertvector(*reinterpret_cast<const UnalignedChars*>(bytes + j), Vector);
    const Vector left = *reinterpret_cast<const Unaligned*>(x + j) * up - first;
    const Ints number = reinterpret_cast<Ints>(left * kFineSteps + kRound) - 0x4b400000;
    *reinterpret_cast<UnalignedChars*>(rest + j) = __builtin_convertvector(number, Chars);
    sums += number;
  }
  int32_t sum = Sum(sums);
  for (int64_t j = whole; j < length; ++j) {
    const float left = x[j] * up - static_cast<float>(bytes[j]);
    const int32_t number = static_cast<int32_t>(BitsOfFloat(left * kFineSteps + kRound)) - 0x4b400000;
    rest[j] = static_cast<int8_t>(number), sum += number;
  }
  return sum;
}

//! Of a row with unit stride; false where a group has no such bytes (infinite, NaN, or very small or large).
inline bool MakeBytes(const float* x, int64_t groups, int64_t length, const ByteRow& to) {
  const int64_t whole = length / kLanes * kLanes;
  float squares = 0.0f;
  for (int64_t group = 0, k = 0; group < groups; ++group, k += length) {
    const float* from = x + k;
    Vector most = {}, odd = {};
    for (int64_t j = 0; j < whole; j += kLanes) {
      const Vector some = *reinterpret_cast<const Unaligned*>(from + j);
      const Vector magnitude = some < 0.0f ? -some : some;
      most = magnitude > most ? magnitude : most;
      odd += some * 0.0f;  // NaN where a number is none
    }
    float largest = 0.0f, none = 0.0f;
    for (int lane = 0; lane < kLanes; ++lane) largest = std::max<float>(largest, most[lane]), none += odd[lane];
    for (int64_t j = whole; j < length; ++j) largest = std::max(largest, std::fabs(from[j])), none += from[j] * 0.0f;
    if (!(largest < 0x1p100f) || none != none || (largest < 0x1p-80f && largest > 0.0f)) return false;
    const float up = largest > 0.0f ? 127.0f / largest : 0.0f;
    Ints sums = {};
    for (int64_t j = 0; j < whole; j += kLanes) {
      const Vector shifted = *reinterpret_cast<const Unaligned*>(from + j) * up + kRound;
      const Ints number = reinterpret_cast<Ints>(shifted) - 0x4b400000;
      *reinterpret_cast<UnalignedChars*>(to.bytes + k + j) = __builtin_convertvector(number, Chars);
      sums += number;
    }
    int32_t sum = Sum(sums);
    for (int64_t j = whole; j < length; ++j) {
      const int32_t number = static_cast<int32_t>(BitsOfFloat(from[j] * up + kRound)) - 0x4b400000;
      to.bytes[k + j] = static_cast<int8_t>(number), sum += number;
    }
    to.factors[group] = largest / 127.0f;
    to.totals[group] = to.factors[group] * static_cast<float>(sum);
    squares += to.factors[group] * to.factors[group];  // infinite: no group is above it
  }
  const float bound = squares * (kFineFrom / static_cast<float>(groups));
  for (int64_t group = 0, k = 0; group < groups; ++group, k += length) {
    const float factor = to.factors[group];
    to.fine[group] = factor * factor > bound;
    if (!to.fine[group]) continue;
    const int32_t sum = MakeRest(x + k, length, 1.0f / factor, to.bytes + k, to.rest + k);
    to.totals[group] += factor / kFineSteps * static_cast<float>(sum);
  }
  return true;
}

/*! What is added to codes of 8 bits before they are multiplied: without instructions for bytes without a sign. */
constexpr int kMoved = UIR_BYTES == 1 ? 0 : 128;

//! sums += products of four codes (without a sign; of 8 bits and moved by kMoved, with one) by four bytes.
template <int kBits>
UIR_INLINE void Dot(Ints& sums, const Bits& codes, const int8_t* bytes) {
  int32_t four;
  std::memcpy(&four, bytes, 4);
#if UIR_BYTES == 1 && UIR_VECTORS == 512
  sums = reinterpret_cast<Ints>(
      _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sums), reinterpret_cast<__m512i>(codes), _mm512_set1_epi32(four)));
#elif UIR_BYTES == 1 && UIR_VECTORS == 256
  sums = reinterpret_cast<Ints>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sums),
                                                        reinterpret_cast<__m256i>(codes), _mm256_set1_epi32(four)));
#elif UIR_VECTORS == 256
  __m256i left = reinterpret_cast<__m256i>(codes), right = _mm256_set1_epi32(four);
  if (kBits == 8) right = _mm256_sign_epi8(right, left), left = _mm256_abs_epi8(left);
  const __m256i pairs = _mm256_maddubs_epi16(left, right);  // at most 2 * 128 * 127
  sums += reinterpret_cast<Ints>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#elif UIR_VECTORS == 128
  sums = vdotq_s32(sums, vreinterpretq_s8_u32(codes), vreinterpretq_s8_s32(vdupq_n_s32(four)));
#else
  const Ints signed_codes = reinterpret_cast<Ints>(codes);
  for (int at = 0; at < 4; ++at) sums += (signed_codes << (24 - 8 * at) >> 24) * int32_t{bytes[at]};
#endif
}

#if UIR_VECTORS == 256 && UIR_BYTES == 0
UIR_INLINE __m256i FourBytes(const int8_t* bytes) {
  float four;
  std::memcpy(&four, bytes, 4);
  return _mm256_castps_si256(_mm256_set1_ps(four));
}

//! sums += products of codes of 4 bits by some rows: by pairs in 16 bits, which hold those of kWords words
//! (8 pairs of at most 2 * 15 * 127: 30480).
template <int kRows, int kWords>
UIR_INLINE void PairSums(const char* codes, const int8_t* const (&x)[kRows], int64_t k, Ints (&sums)[kRows][kVectors]) {
  __m256i parts[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) parts[r][v] = _mm256_setzero_si256();
  }
#pragma GCC unroll 8
  for (int half = 0; half < 2 * kWords; ++half) {
    __m256i some[kVectors];
    if (half % 2 == 0) __builtin_prefetch(codes + half / 2 * kBlock * 4 + kAheadBytes);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const char* here = codes + (half / 2 * kVectors + v) * 32;
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(here));
      some[v] = _mm256_and_si256(half % 2 == 0 ? bits : _mm256_srli_epi32(bits, 4), _mm256_set1_epi8(15));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i four = FourBytes(x[r] + k + half * 4);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        parts[r][v] = _mm256_add_epi16(parts[r][v], _mm256_maddubs_epi16(some[v], four));
        __asm__("" : "+x"(parts[r][v]));  // added in another order they leave no registers for the others
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] += reinterpret_cast<Ints>(_mm256_madd_epi16(parts[r][v], _mm256_set1_epi16(1)));
    }
  }
}
#endif

//! sums = products of a group's codes by some rows, from k on.
template <int kRows, int kBits>
UIR_INLINE void GroupSums(const char* codes, int64_t words, const int8_t* const (&x)[kRows], int64_t k,
                          Ints (&sums)[kRows][kVectors]) {
  for (auto& row : sums) std::fill(std::begin(row), std::end(row), Ints{});
#if UIR_VECTORS == 256 && UIR_BYTES == 0
  if constexpr (kBits == 4) {
    for (; words >= 4; words -= 4, codes += 4 * kBlock * 4, k += 32) PairSums<kRows, 4>(codes, x, k, sums);
    for (; words > 0; --words, codes += kBlock * 4, k += 8) PairSums<kRows, 1>(codes, x, k, sums);
    return;
  }
#endif
  constexpr int kParts = kRows == 1 ? 2 : 1;
  Ints parts[kRows][kParts][kVectors] = {};
  for (int64_t word = 0; word < words; ++word, k += 32 / kBits) {
    Bits bits[kVectors];
    Words(codes + word * kBlock * 4, bits);
    __builtin_prefetch(codes + word * kBlock * 4 + kAheadBytes);
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kBits == 4) {
        const Bits low = bits[v] & 0x0f0f0f0fu, high = bits[v] >> 4 & 0x0f0f0f0fu;
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          Dot<kBits>(parts[r][0][v], low, x[r] + k);
          Dot<kBits>(parts[r][kParts - 1][v], high, x[r] + k + 4);
        }
      } else {
        const Bits moved = kMoved ? bits[v] ^ 0x80808080u : bits[v];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) Dot<kBits>(parts[r][0][v], moved, x[r] + k);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = kParts == 2 ? parts[r][0][v] + parts[r][1][v] : parts[r][0][v];
  }
}

/*! Some rows times some blocks. */
template <int kRows, int kBits>
void ByteRows(const Panels& panels, const Operands& at, const ByteRow* x, int64_t row, Range blocks) {
  const float zero = panels.zero - (kBits == 8 ? kMoved : 0);
  const bool shifted = panels.offsets || zero != 0.0f;
  const int8_t* bytes[kRows];
  for (int r = 0; r < kRows; ++r) bytes[r] = x[r].bytes;
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* group = panels.packed + block * panels.block_bytes;
    Vector sums[kRows][kVectors] = {};
    int64_t k = 0;
    for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
      Ints whole[kRows][kVectors];
      GroupSums<kRows, kBits>(group, panels.words, bytes, k, whole);
      Vector scale[kVectors], shift[kVectors];
      GroupOf(panels, group, zero, scale, shift);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] += __builtin_convertvector(whole[r][v], Vector) * (scale[v] * x[r].factors[number]);
          if (shifted) sums[r][v] += shift[v] * x[r].totals[number];
        }
      }
      for (int r = 0; r < kRows; ++r) {
        if (!x[r].fine[number]) continue;
        const int8_t* rest[1] = {x[r].rest};
        Ints finer[1][kVectors];
        GroupSums<1, kBits>(group, panels.words, rest, k, finer);
        const float factor = x[r].factors[number] / kFineSteps;
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] += __builtin_convertvector(finer[0][v], Vector) * (scale[v] * factor);
        }
      }
      k += panels.attrs.weight.group;
    }
    for (int r = 0; r < kRows; ++r) Store<kVectors>(panels.attrs, at, row + r, block * kBlock, sums[r]);
  }
}

/*! What computes so many rows. */
struct ByteTile {
  int rows;
  ByteFunction run[2];  // codes of 4 bits, of 8
};

template <int kRows>
constexpr ByteTile ByteTileOf() {
  return {kRows, {ByteRows<kRows, 4>, ByteRows<kRows, 8>}};
}
