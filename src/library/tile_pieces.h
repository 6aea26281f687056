// SPDX-License-Identifier: Apache-2.0
// Numbers of float32 as pieces of 8 bits on the matrix tiles of a CPU (AMX, bfloat16, sums in float32). No guard: it is
// included behind vector_math.h or what includes it, in a namespace and for instructions of its own, of AVX512 and AMX.

#include "library/spread.h"

/*! Rows of a tile, numbers of one of its rows, bytes of a tile. */
constexpr int kSide = 16, kDepth = 32, kTileBytes = 1024;
/*! Pieces that a number of float32 is the sum of. */
constexpr int kExact = 3;
/*! Two tiles of all pieces, [piece][2]: what one step of a product of 32 by 32 reads of a side. */
constexpr int kPairBytes = 2 * kTileBytes, kStepBytes = kExact * kPairBytes;

typedef uint16_t Halves __attribute__((vector_size(32)));
typedef Halves UnalignedHalves __attribute__((aligned(1)));

//! The 8 bits of a number that count most, to nearest; what is left goes on.
UIR_INLINE Bits Piece(Vector& x) {
  const Bits bits = reinterpret_cast<Bits>(x);
  const Bits piece = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  x -= reinterpret_cast<Vector>(piece);
  return piece;
}

/*! Eight tiles of 16 rows of 64 bytes, for as long as this lives. */
class Tiles {
 public:
  Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, none[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
};

/*! Two tiles side by side of each piece. */
struct TilePair {
  const char* first;
  int64_t piece, next;  // bytes from a piece to the next one, and from a tile to that beside it
};

UIR_INLINE TilePair PairAt(const char* step) { return {step, kPairBytes, kTileBytes}; }

/*! Tiles 0 to 3 are the sums [32][32] of a product. */
UIR_INLINE void LoadSums(const float* sums) {
  constexpr int64_t kRow = 2 * kSide * sizeof(float);
  __asm__ volatile("" ::: "memory");  // loads of tiles do not say that they read what was stored before
  _tile_loadd(0, sums, kRow);
  _tile_loadd(1, sums + kSide, kRow);
  _tile_loadd(2, sums + kSide * 2 * kSide, kRow);
  _tile_loadd(3, sums + kSide * 2 * kSide + kSide, kRow);
}

UIR_INLINE void StoreSums(float* sums) {
  constexpr int64_t kRow = 2 * kSide * sizeof(float);
  _tile_stored(0, sums, kRow);
  _tile_stored(1, sums + kSide, kRow);
  _tile_stored(2, sums + kSide * 2 * kSide, kRow);
  _tile_stored(3, sums + kSide * 2 * kSide + kSide, kRow);
}

UIR_INLINE void ZeroSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

//! Tiles 0 to 3 += rows [16, 32] by columns [32, 16], each two tiles of them, in pieces; 4 and 5 are rows, 6 and 7
//! columns. Of three pieces a side six products count. Tiles 2 and 3 stay where `two` is false.
template <int kPieces>
UIR_INLINE void AddProducts(const TilePair& rows, bool two, const TilePair& columns) {
  __asm__ volatile("" ::: "memory");
#pragma GCC unroll 3
  for (int i = 0; i < kPieces; ++i) {
    const char* left = rows.first + i * rows.piece;
    _tile_loadd(4, left, 64);
    if (two) _tile_loadd(5, left + rows.next, 64);
#pragma GCC unroll 3
    for (int j = 0; j < kPieces - i; ++j) {
      const char* right = columns.first + j * columns.piece;
      _tile_loadd(6, right, 64);
      _tile_loadd(7, right + columns.next, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if (two) {
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
}

UIR_INLINE void Transpose(Vector (&rows)[kLanes]) {
  __m512 pairs[kLanes], quads[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i += 2) {
    pairs[i] = _mm512_unpacklo_ps((__m512)rows[i], (__m512)rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps((__m512)rows[i], (__m512)rows[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i += 4) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(pairs[i + j]), b = _mm512_castps_pd(pairs[i + j + 2]);
      quads[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      quads[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 a = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0x88);
    const __m512 x = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0xdd);
    const __m512 y = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0xdd);
    rows[c] = (Vector)_mm512_shuffle_f32x4(a, b, 0x88);
    rows[4 + c] = (Vector)_mm512_shuffle_f32x4(x, y, 0x88);
    rows[8 + c] = (Vector)_mm512_shuffle_f32x4(a, b, 0xdd);
    rows[12 + c] = (Vector)_mm512_shuffle_f32x4(x, y, 0xdd);
  }
}

/*! The upper halves of two vectors' numbers, pair by pair. */
UIR_INLINE __m512i UpperHalves(const Vector& even, const Vector& odd) {
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32((__m512i)even, 16), (__m512i)odd);
}

UIR_INLINE Vector Upper(const Vector& x) { return (Vector)((Bits)x & 0xffff0000u); }

//! Rows in pieces, to nearest, [pair of tiles of rows][step][piece][2][16 rows][32 numbers]; zeros beyond the rows and
//! the columns.
inline void PackRows(const float* from, int64_t row_stride, int64_t rows, int64_t columns, char* to, Spread* spread) {
  const int64_t steps = CeilDiv(columns, kDepth);
  for (int64_t row = 0; row < RoundUp(rows, 2 * kSide); ++row) {
    char* here = to + row / (2 * kSide) * steps * kStepBytes + row % (2 * kSide) * 2 * kDepth;
    for (int64_t at = 0; at < steps * kDepth; at += kLanes) {
      Vector some = {};
      if (row < rows && at < columns) Get(some, from + row * row_stride + at, columns - at);
      spread->Add(some);
      char* piece_at = here + at / kDepth * kStepBytes + at % kDepth * 2;
      for (int piece = 0; piece < kExact; ++piece) {
        const Halves halves = __builtin_convertvector(Piece(some) >> 16, Halves);
        *reinterpret_cast<UnalignedHalves*>(piece_at + piece * kPairBytes) = halves;
      }
    }
  }
}
