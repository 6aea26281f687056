// SPDX-License-Identifier: Apache-2.0
#include "library/tile_product.h"

#ifdef UIR_TILES
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

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,f16c,amx-tile,amx-bf16")
#define UIR_VECTORS 512
namespace tiles {
constexpr int kLanes = 16;
#include "library/quantized_panels.h"
#include "library/tile_pieces.h"

/*! Rows of x in pieces: [piece][tile of rows][step][kSide][kDepth], zeros beyond the rows and beyond k. */
struct TiledRows {
  char* tiles;
  int64_t rows, steps;

  int64_t row_tiles() const { return CeilDiv(rows, kSide); }
  char* at(int piece, int64_t row_tile) const { return tiles + (piece * row_tiles() + row_tile) * steps * kTileBytes; }
};

UIR_INLINE float SumOfAll(const Vector& x) {
  float sum = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane) sum += x[lane];
  return sum;
}

/*! A row of x, of which a tile has the row number `row`; false where it has no pieces. */
template <int kPieces>
bool MakeRow(const float* x, int64_t k, const TiledRows& to, int64_t row) {
  Spread spread;
  char* here[kPieces];
  for (int piece = 0; piece < kPieces; ++piece) here[piece] = to.at(piece, row / kSide) + row % kSide * kDepth * 2;
  for (int64_t at = 0; at < to.steps * kDepth; at += kLanes) {
    Vector some = {};
    if (at < k) Get(some, x + at, k - at);
    spread.Add(some);
    for (int piece = 0; piece < kPieces; ++piece) {
      const Halves halves = __builtin_convertvector(Piece(some) >> 16, Halves);
      *reinterpret_cast<UnalignedHalves*>(here[piece] + at / kDepth * kTileBytes + at % kDepth * 2) = halves;
    }
  }
  return spread.IsWithin(-80, 100);
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

template <int kPieces>
UIR_INLINE void Multiply(const TiledRows& x, int64_t row_tile, bool two, const char* weight, char* sums) {
  const int64_t next = x.steps * kTileBytes;
  ZeroSums();
  for (int64_t at = 0; at < next; at += kTileBytes) {
    AddProducts<kPieces>({x.at(0, row_tile) + at, x.row_tiles() * next, next}, two,
                         {weight + at, next, kPieces * next});
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileBytes, 64);
  _tile_stored(2, sums + 2 * kTileBytes, 64);
  _tile_stored(3, sums + 3 * kTileBytes, 64);
}

template <int kBits, int kPieces>
bool Blocks(const Panels& panels, const Operands& to, const TiledRows& x, Range blocks) {
  bool all = true;
  const Tiles tiles;
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
          Store<kVectors>(panels.attrs, to, row, (block + b) * kBlock, &sum);
        }
      }
    }
  }
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
  tiles::TiledRows made{nullptr, rows, CeilDiv(panels.attrs.k, tiles::kDepth)};
  made.tiles = ThreadScratch(0, kPieces * made.row_tiles() * made.steps * tiles::kTileBytes);
  const int64_t last = made.row_tiles() - 1, beyond = rows - last * tiles::kSide;
  for (int piece = 0; piece < kPieces && beyond < tiles::kSide; ++piece) {
    std::memset(made.at(piece, last), 0, made.steps * tiles::kTileBytes);
  }
  std::atomic<bool> all{true};
  ParallelRun(tasks, [&](int task) {
    const Range part = Part(rows, tiles::kSide, tasks, task);
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
