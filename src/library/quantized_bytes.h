// SPDX-License-Identifier: Apache-2.0
// Rows of x in bytes times codes: of each group a dot product of bytes, exact in 32 bits, then scales. See
// quantized_panels.h. A group of x is whole numbers from -127 to 127 times one number, the greatest over 127.

typedef int8_t Chars __attribute__((vector_size(kLanes)));
typedef Chars UnalignedChars __attribute__((aligned(1)));

//! Of a row with unit stride; false where a group has no such bytes (infinite, NaN, or very small or large).
inline bool MakeBytes(const float* x, int64_t groups, int64_t length, int8_t* bytes, float* factors, float* totals) {
  const float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the nearest integer
  const int64_t whole = length / kLanes * kLanes;
  for (int64_t group = 0; group < groups; ++group, x += length, bytes += length) {
    Vector most = {}, odd = {};
    for (int64_t j = 0; j < whole; j += kLanes) {
      const Vector some = *reinterpret_cast<const Unaligned*>(x + j);
      const Vector magnitude = some < 0.0f ? -some : some;
      most = magnitude > most ? magnitude : most;
      odd += some * 0.0f;  // NaN where a number is none
    }
    float largest = 0.0f, none = 0.0f;
    for (int lane = 0; lane < kLanes; ++lane) largest = std::max<float>(largest, most[lane]), none += odd[lane];
    for (int64_t j = whole; j < length; ++j) largest = std::max(largest, std::fabs(x[j])), none += x[j] * 0.0f;
    if (!(largest < 0x1p100f) || none != none || (largest < 0x1p-80f && largest > 0.0f)) return false;
    const float up = largest > 0.0f ? 127.0f / largest : 0.0f;
    Ints sums = {};
    for (int64_t j = 0; j < whole; j += kLanes) {
      const Vector shifted = *reinterpret_cast<const Unaligned*>(x + j) * up + kRound;
      const Ints number = reinterpret_cast<Ints>(shifted) - 0x4b400000;
      *reinterpret_cast<UnalignedChars*>(bytes + j) = __builtin_convertvector(number, Chars);
      sums += number;
    }
    int32_t sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
    for (int64_t j = whole; j < length; ++j) {
      const int32_t number = static_cast<int32_t>(BitsOfFloat(x[j] * up + kRound)) - 0x4b400000;
      bytes[j] = static_cast<int8_t>(number), sum += number;
    }
    factors[group] = largest / 127.0f;
    totals[group] = factors[group] * static_cast<float>(sum);
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

/*! Some rows times some blocks. */
template <int kRows, int kBits>
void ByteRows(const Panels& panels, const Operands& at, const ByteRow* x, int64_t row, Range blocks) {
  constexpr int kParts = kRows == 1 ? 2 : 1;
  const float zero = panels.zero - (kBits == 8 ? kMoved : 0);
  const bool shifted = panels.offsets || zero != 0.0f;
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* group = panels.packed + block * panels.block_bytes;
    Vector sums[kRows][kVectors] = {};
    int64_t k = 0;
    for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
      Ints parts[kRows][kParts][kVectors] = {};
      for (int64_t word = 0; word < panels.words; ++word, k += 32 / kBits) {
        Bits words[kVectors];
        Words(group + word * kBlock * 4, words);
        __builtin_prefetch(group + word * kBlock * 4 + kAheadBytes);
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kBits == 4) {
            const Bits low = words[v] & 0x0f0f0f0fu, high = words[v] >> 4 & 0x0f0f0f0fu;
#pragma GCC unroll 8
            for (int r = 0; r < kRows; ++r) {
              Dot<kBits>(parts[r][0][v], low, x[r].bytes + k);
              Dot<kBits>(parts[r][kParts - 1][v], high, x[r].bytes + k + 4);
            }
          } else {
            const Bits codes = kMoved ? words[v] ^ 0x80808080u : words[v];
#pragma GCC unroll 8
            for (int r = 0; r < kRows; ++r) Dot<kBits>(parts[r][0][v], codes, x[r].bytes + k);
          }
        }
      }
      Vector scale[kVectors], shift[kVectors];
      GroupOf(panels, group, zero, scale, shift);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          Ints whole = parts[r][0][v];
          if (kParts == 2) whole += parts[r][kParts - 1][v];
          sums[r][v] += __builtin_convertvector(whole, Vector) * (scale[v] * x[r].factors[number]);
          if (shifted) sums[r][v] += shift[v] * x[r].totals[number];
        }
      }
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
