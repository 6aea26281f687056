// SPDX-License-Identifier: Apache-2.0
// Many rows of x by blocks of a packed weight that are unpacked once for all of them: a piece of a block's k at a time,
// which the first cache holds beside a piece of some rows. See quantized_panels.h.

/*! Numbers of k of a piece at most (one group, where a group has more), and rows whose sums stay in registers. */
constexpr int64_t kPieceLength = 320;
constexpr int kPieceRows = 6;

/*! Codes of some groups as numbers [k][kBlock]. */
template <int kBits>
UIR_INLINE void UnpackGroups(const Panels& panels, const char* group, int64_t groups, float* to) {
  for (int64_t number = 0; number < groups; ++number, group += panels.group_bytes) {
    Vector scale[kVectors], shift[kVectors];
    GroupOf(panels, group, panels.zero, scale, shift);
    for (int64_t word = 0; word < panels.words; ++word, to += 32 / kBits * kBlock) {
      __builtin_prefetch(group + word * kBlock * 4 + kAheadBytes);
      Bits words[kVectors];
      Words(group + word * kBlock * 4, words);
      for (int v = 0; v < kVectors; ++v) {
        Vector codes[32 / kBits];
        AllCodes<kBits>(words[v], codes);
#pragma GCC unroll 8
        for (int at = 0; at < 32 / kBits; ++at) {
          *reinterpret_cast<Unaligned*>(to + at * kBlock + v * kLanes) = codes[at] * scale[v] + shift[v];
        }
      }
    }
  }
}

template <DType kType>
UIR_INLINE void UnpackNumbers(const char* from, int64_t length, float* to) {
  for (int64_t at = 0; at < length * kBlock; at += kLanes) {
    Vector some = {};
    Numbers<kType>(from + at * 2, some);
    *reinterpret_cast<Unaligned*>(to + at) = some;
  }
}

/*! sums [kRows][kBlock] (+)= rows of x by a piece [length][kBlock]. */
template <int kRows>
void PieceRows(const float* x, int64_t x_row, const float* piece, int64_t length, bool first, float* sums) {
  Vector parts[kRows][kVectors];
  const float* rows[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    rows[r] = x + r * x_row;
    for (int v = 0; v < kVectors; ++v) {
      parts[r][v] = first ? Vector{} : Vector(*reinterpret_cast<const Unaligned*>(sums + r * kBlock + v * kLanes));
    }
  }
  for (int64_t j = 0; j < length; ++j, piece += kBlock) {
    Vector some[kVectors];
    for (int v = 0; v < kVectors; ++v) some[v] = *reinterpret_cast<const Unaligned*>(piece + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const float factor = rows[r][j];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) parts[r][v] += some[v] * factor;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Unaligned*>(sums + r * kBlock + v * kLanes) = parts[r][v];
    }
  }
}

using PieceFunction = void (*)(const float*, int64_t, const float*, int64_t, bool, float*);
/*! By the number of rows, less one. */
constexpr PieceFunction kPieceTiles[kPieceRows] = {PieceRows<1>, PieceRows<2>, PieceRows<3>,
                                                   PieceRows<4>, PieceRows<5>, PieceRows<6>};

/*! Numbers of a piece's k: whole groups, pieces of about one length. */
inline int64_t PieceLength(const Panels& panels) {
  const int64_t granule = panels.groups == 0 ? 1 : panels.attrs.weight.group, all = panels.attrs.k / granule;
  const int64_t most = std::max<int64_t>(1, kPieceLength / granule);
  return CeilDiv(all, CeilDiv(all, most)) * granule;
}

inline int64_t UnpackedFloats(const Panels& panels, int64_t rows) { return (PieceLength(panels) + rows) * kBlock; }

/*! Rows of unit stride by some blocks; scratch has `UnpackedFloats`. */
inline void UnpackedRows(const Panels& panels, const Operands& at, int64_t x_row, int64_t rows, Range blocks,
                         float* scratch) {
  const int64_t k = panels.attrs.k, length = PieceLength(panels);
  float *piece = scratch, *sums = scratch + length * kBlock;
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* packed = panels.packed + block * panels.block_bytes;
    for (int64_t begin = 0; begin < k; begin += length) {
      const int64_t here = std::min(length, k - begin);
      if (panels.groups == 0) {
        const char* numbers = packed + begin * kBlock * 2;
        panels.half ? UnpackNumbers<DType::kF16>(numbers, here, piece)
                    : UnpackNumbers<DType::kBF16>(numbers, here, piece);
      } else {
        const int64_t group = panels.attrs.weight.group;
        const char* groups = packed + begin / group * panels.group_bytes;
        panels.attrs.weight.bits == 4 ? UnpackGroups<4>(panels, groups, here / group, piece)
                                      : UnpackGroups<8>(panels, groups, here / group, piece);
      }
      for (int64_t row = 0; row < rows; row += kPieceRows) {
        const int64_t some = std::min<int64_t>(kPieceRows, rows - row);
        kPieceTiles[some - 1](at.x + row * x_row + begin, x_row, piece, here, begin == 0, sums + row * kBlock);
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      Vector done[kVectors];
      for (int v = 0; v < kVectors; ++v)
        done[v] = *reinterpret_cast<const Unaligned*>(sums + row * kBlock + v * kLanes);
      Store<kVectors>(panels.attrs, at, row, block * kBlock, done);
    }
  }
}
