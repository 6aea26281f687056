// SPDX-License-Identifier: Apache-2.0
#include "library/tile_product.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_TILES 1
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "library/dtype.h"
#include "library/kernel.h"

namespace uir::library {

#ifdef UIR_TILES
namespace {

/*! Rows of a tile, numbers of one of its rows, bytes of a tile. */
constexpr int kSide = 16, kDepth = 32, kTileBytes = 1024;

/*! Rows of x in pieces: [piece][tile of rows][step][kSide][kDepth], zeros beyond the rows and beyond k. */
struct TiledRows {
  char* tiles;
  int64_t rows, steps;

  int64_t row_tiles() const { return CeilDiv(rows, kSide); }
  char* at(int piece, int64_t row_tile) const { return tiles + (piece * row_tiles() + row_tile) * steps * kTileBytes; }
};

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,f16c,amx-tile,amx-bf16")
#define UIR_VECTORS 512
namespace tiles {
constexpr int kLanes = 16;
#include "library/quantized_panels.h"

typedef uint16_t Halves __attribute__((vector_size(32)));
typedef Halves UnalignedHalves __attribute__((aligned(1)));

UIR_INLINE float SumOfAll(const Vector& x) {
  float sum = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane) sum += x[lane];
  return sum;
}

//! The 8 bits of a number that count most, to nearest; what is left goes on.
UIR_INLINE Bits Piece(Vector& x) {
  const Bits bits = reinterpret_cast<Bits>(x);
  const Bits piece = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  x -= reinterpret_cast<Vector>(piece);
  return piece;
}

/*! A row of x, of which a tile has the row number `row`; false where it has no pieces. */
template <int kPieces>
bool MakeRow(const float* x, int64_t k, const TiledRows& to, int64_t row) {
  Vector most = {}, odd = {};
  char* here[kPieces];
  for (int piece = 0; piece < kPieces; ++piece) here[piece] = to.at(piece, row / kSide) + row % kSide * kDepth * 2;
  for (int64_t at = 0; at < to.steps * kDepth; at += kLanes) {
    Vector some = {};
    if (at < k) Get(some, x + at, k - at);
    const Vector magnitude = some < 0.0f ? -some : some;
    most = magnitude > most ? magnitude : most;
    odd += some * 0.0f;  // NaN where a number is none
    for (int piece = 0; piece < kPieces; ++piece) {
      const Halves halves = __builtin_convertvector(Piece(some) >> 16, Halves);
      *reinterpret_cast<UnalignedHalves*>(here[piece] + at / kDepth * kTileBytes + at % kDepth * 2) = halves;
    }
  }
  float largest = 0.0f, none = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane) largest = std::max<float>(largest, most[lane]), none += odd[lane];
  return largest < 0x1p100f && none == none && !(largest < 0x1p-80f && largest > 0.0f);
}

/*! The numbers of two k in pieces, side by side. */
template <int kPieces>
UIR_INLINE void StorePair(Vector& even, Vector& odd, int64_t k, int64_t steps, char* to) {
  char* here = to + k / kDepth * kTileBytes + k % kDepth / 2 * 64;
#pragma GCC unroll 3
  for (int piece = 0; piece < kPieces; ++piece) {
    const Bits first = Piece(even) >> 16;
    *reinterpret_cast<UnalignedBits*>(here + piece * steps * kTileBytes) = Piece(odd) | first;
  }
}

/*! The same of float16: its upper 8 bits, cut off, leave no more than 8. */
template <int kPieces>
UIR_INLINE void StoreHalfPair(Vector& even, Vector& odd, int64_t k, int64_t steps, char* to) {
  char* here = to + k / kDepth * kTileBytes + k % kDepth / 2 * 64;
#pragma GCC unroll 2
  for (int piece = 0; piece < kPieces; ++piece) {
    const Bits first = reinterpret_cast<Bits>(even) & 0xffff0000u, second = reinterpret_cast<Bits>(odd) & 0xffff0000u;
    *reinterpret_cast<UnalignedBits*>(here + piece * steps * kTileBytes) = second | first >> 16;
    even -= reinterpret_cast<Vector>(first), odd -= reinterpret_cast<Vector>(second);
  }
}

/*! A block of the weight in pieces: [piece][step][pairs of k][outputs][2]; false where a number is none. */
template <int kBits, int kPieces>
bool Unpack(const Panels& panels, int64_t block, int64_t steps, char* to) {
  const char* group = panels.packed + block * panels.block_bytes;
  for (int piece = 0; piece < kPieces && panels.attrs.k % kDepth != 0; ++piece) {
    std::memset(to + ((piece + 1) * steps - 1) * kTileBytes, 0, kTileBytes);
  }
  if constexpr (kBits == 16) {
    static_assert(kPieces <= 2, "two pieces are all of a float16");
    Vector none = {};
    for (int64_t at = 0; at < panels.attrs.k; at += 2, group += 4 * kBlock) {
      Vector even = {}, odd = {};
      __builtin_prefetch(group + kAheadBytes);
      FromHalves(group, even);
      if (at + 1 < panels.attrs.k) FromHalves(group + 2 * kBlock, odd);
      none += even * 0.0f;
      none += odd * 0.0f;
      StoreHalfPair<kPieces>(even, odd, at, steps, to);
    }
    return SumOfAll(none) == 0.0f;
  }
  constexpr int kCodes = 32 / kBits;
  int64_t k = 0;
  for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
    Vector scale[1], shift[1];
    GroupOf(panels, group, panels.zero, scale, shift);
    for (int64_t word = 0; word < panels.words; ++word) {
      Bits words[1];
      Words(group + word * kBlock * 4, words);
      Vector values[kCodes];
      AllCodes<kBits>(words[0], values);
#pragma GCC unroll 4
      for (int pair = 0; pair < kCodes; pair += 2, k += 2) {
        Vector even = values[pair] * scale[0] + shift[0], odd = values[pair + 1] * scale[0] + shift[0];
        StorePair<kPieces>(even, odd, k, steps, to);
      }
    }
  }
  return true;
}

/*! Tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 blocks of the weight. */
template <int kPieces>
UIR_INLINE void Multiply(const TiledRows& x, int64_t row_tile, bool two, const char* weight, char* sums) {
  const int64_t next = x.steps * kTileBytes, block = kPieces * next;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < x.steps; ++step) {
#pragma GCC unroll 3
    for (int i = 0; i < kPieces; ++i) {
      const char* rows = x.at(i, row_tile) + step * kTileBytes;
      _tile_loadd(4, rows, 64);
      if (two) _tile_loadd(5, rows + next, 64);
#pragma GCC unroll 3
      for (int j = 0; j < kPieces - i; ++j) {
        const char* columns = weight + j * next + step * kTileBytes;
        _tile_loadd(6, columns, 64);
        _tile_loadd(7, columns + block, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (two) {
          _tile_dpbf16ps(2, 5, 6);
          _tile_dpbf16ps(3, 5, 7);
        }
      }
    }
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileBytes, 64);
  _tile_stored(2, sums + 2 * kTileBytes, 64);
  _tile_stored(3, sums + 3 * kTileBytes, 64);
}

template <int kBits, int kPieces>
bool Blocks(const Panels& panels, const Operands& to, const TiledRows& x, Range blocks) {
  bool all = true;
  struct alignas(64) {
    uint8_t palette = 1, start = 0, none[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  _tile_loadconfig(&config);
  alignas(64) float sums[4][kSide][kSide];
  const int64_t block_bytes = kPieces * x.steps * kTileBytes;
  char* weight = ThreadScratch(2, 2 * block_bytes);
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; block += 2) {
    const int64_t count = std::min<int64_t>(2, blocks.begin + blocks.size - block);
    for (int64_t b = 0; b < count; ++b) {
      all &= Unpack<kBits, kPieces>(panels, block + b, x.steps, weight + b * block_bytes);
    }
    for (int64_t row_tile = 0; row_tile < x.row_tiles(); row_tile += 2) {
      Multiply<kPieces>(x, row_tile, row_tile + 1 < x.row_tiles(), weight, reinterpret_cast<char*>(sums));
      for (int64_t row = row_tile * kSide; row < std::min(x.rows, (row_tile + 2) * kSide); ++row) {
        const int64_t at = row - row_tile * kSide;
        for (int64_t b = 0; b < count; ++b) {
          const Vector sum = *reinterpret_cast<const Vector*>(sums[at / kSide * 2 + b][at % kSide]);
          Store(panels, to, row, (block + b) * kBlock, &sum);
        }
      }
    }
  }
  _tile_release();
  return all;
}

template <int kPieces>
constexpr bool (*BlocksOf(int kind))(const Panels&, const Operands&, const TiledRows&, Range) {
  if constexpr (kPieces == 2) return Blocks<16, kPieces>;
  return kind == 0 ? Blocks<4, kPieces> : Blocks<8, kPieces>;
}
}  // namespace tiles
#pragma GCC pop_options

template <int kPieces>
bool Run(const Panels& panels, const Operands& to, const float* x, int64_t row_stride, int64_t rows, int tasks) {
  TiledRows made{nullptr, rows, CeilDiv(panels.attrs.k, kDepth)};
  made.tiles = ThreadScratch(0, kPieces * made.row_tiles() * made.steps * kTileBytes);
  const int64_t last = made.row_tiles() - 1, beyond = rows - last * kSide;
  for (int piece = 0; piece < kPieces && beyond < kSide; ++piece) {
    std::memset(made.at(piece, last), 0, made.steps * kTileBytes);
  }
  std::atomic<bool> all{true};
  ParallelRun(tasks, [&](int task) {
    const Range part = Part(rows, kSide, tasks, task);
    for (int64_t row = part.begin; row < part.begin + part.size; ++row) {
      if (!tiles::MakeRow<kPieces>(x + row * row_stride, panels.attrs.k, made, row)) all = false;
    }
  });
  if (!all) return false;
  ParallelRun(tasks, [&](int task) {
    const Range blocks = Part(panels.blocks(), 2, tasks, task);
    if (blocks.size <= 0) return;
    if (!tiles::BlocksOf<kPieces>(panels.kind())(panels, to, made, blocks)) all = false;
  });
  return all;
}

}  // namespace

bool HasTiles() {
  static const bool has = [] {
    constexpr unsigned kTile = 1u << 24, kBFloat = 1u << 22;
    constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of arch_prctl
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kTile) == 0 || (d & kBFloat) == 0) return false;
    return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
  }();
  return has;
}

bool RunTiles(const Panels& panels, const Operands& to, const float* x, int64_t row_stride, int64_t rows, int pieces,
              int tasks) {
  const auto run = pieces == 1 ? Run<1> : pieces == 2 ? Run<2> : Run<3>;
  return run(panels, to, x, row_stride, rows, tasks);
}
#else
bool HasTiles() { return false; }
bool RunTiles(const Panels&, const Operands&, const float*, int64_t, int64_t, int, int) { return false; }
#endif

}  // namespace uir::library
