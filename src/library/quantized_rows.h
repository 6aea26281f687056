// SPDX-License-Identifier: Apache-2.0
// Rows of x times blocks of a weight of few bits, whose values are made in registers: see quantized_panels.h.

//! Values of a word's codes from number kAt of its k on, times rows of x: in the order of k, as unpacked panels have
//! them (unpacked_panels.h), so that a row is the same by both.
template <int kRows, int kBits, int kAt>
UIR_INLINE void Multiply(const Bits (&words)[kVectors], const Vector (&scale)[kVectors],
                         const Vector (&shift)[kVectors], const float* x, Vector (&sums)[kRows][kVectors]) {
  if constexpr (kAt < 32 / kBits) {
    Vector values[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      Codes<kBits, CodeOf<kBits>(kAt)>(words[v], values[v]);
      values[v] = values[v] * scale[v] + shift[v];
    }
    const float* here = x + kAt * kRows;
#pragma GCC unroll 32
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[row][v] += values[v] * here[row];
    }
    Multiply<kRows, kBits, kAt + 1>(words, scale, shift, x, sums);
  }
}

/*! The same of one row and its codes, in sums that do not wait for one another. */
template <int kBits, int kAt>
UIR_INLINE void MultiplyCodes(const Bits (&words)[kVectors], const float* x, Vector (&parts)[4][kVectors]) {
  if constexpr (kAt < 32 / kBits) {
    for (int v = 0; v < kVectors; ++v) {
      Vector codes;
      Codes<kBits, kAt>(words[v], codes);
      parts[kAt % 4][v] += codes * x[Place<kBits>(kAt)];
    }
    MultiplyCodes<kBits, kAt + 1>(words, x, parts);
  }
}

/*! One row, whose groups have the sums `totals`: scales and shifts count once for each group. */
template <int kBits>
void OneRow(const Panels& panels, const Operands& at, int64_t row, int64_t, Range blocks) {
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* group = panels.packed + block * panels.block_bytes;
    const float* x = at.x;
    Vector sums[1][kVectors] = {};
    for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
      Vector parts[4][kVectors] = {}, scale[kVectors], shift[kVectors];
      for (int64_t word = 0; word < panels.words; ++word, x += 32 / kBits) {
        Bits words[kVectors];
        Words(group + word * kBlock * 4, words);
        MultiplyCodes<kBits, 0>(words, x, parts);
      }
      GroupOf(panels, group, panels.zero, scale, shift);
      for (int v = 0; v < kVectors; ++v) {
        const Vector part = (parts[0][v] + parts[1][v]) + (parts[2][v] + parts[3][v]);
        sums[0][v] += part * scale[v];
        sums[0][v] += shift[v] * at.totals[number];
      }
    }
    Store<kVectors>(panels.attrs, at, row, block * kBlock, sums[0]);
  }
}

/*! `rows` rows of x, [k, kRows] with zeros beyond them. */
template <int kRows, int kBits>
void SomeRows(const Panels& panels, const Operands& at, int64_t row, int64_t rows, Range blocks) {
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* group = panels.packed + block * panels.block_bytes;
    const float* x = at.x;
    Vector sums[kRows][kVectors] = {};
    for (int64_t number = 0; number < panels.groups; ++number, group += panels.group_bytes) {
      Vector scale[kVectors], shift[kVectors];
      GroupOf(panels, group, panels.zero, scale, shift);
      for (int64_t word = 0; word < panels.words; ++word, x += 32 / kBits * kRows) {
        Bits words[kVectors];
        Words(group + word * kBlock * 4, words);
        Multiply<kRows, kBits, 0>(words, scale, shift, x, sums);
      }
    }
    for (int64_t r = 0; r < rows; ++r) Store<kVectors>(panels.attrs, at, row + r, block * kBlock, sums[r]);
  }
}

/*! One row by blocks of numbers of 16 bits: [k][kBlock]. */
template <DType kType>
void HalfRow(const Panels& panels, const Operands& at, int64_t row, int64_t, Range blocks) {
  constexpr int kParts = 4;
  const int64_t k = panels.attrs.k, whole = k / kParts * kParts;
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* weight = panels.packed + block * panels.block_bytes;
    Vector parts[kParts][kVectors] = {};
    auto add = [&](int64_t j, int part) __attribute__((always_inline)) {
      if (part % 2 == 0) __builtin_prefetch(weight + kAheadBytes);  // one for each 64 bytes
      for (int v = 0; v < kVectors; ++v, weight += kLanes * 2) {
        Vector some = {};
        Numbers<kType>(weight, some);
        parts[part][v] += some * at.x[j];
      }
    };
    for (int64_t j = 0; j < whole; j += kParts) {
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) add(j + part, part);
    }
    for (int64_t j = whole; j < k; ++j) add(j, 0);
    Vector sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = (parts[0][v] + parts[1][v]) + (parts[2][v] + parts[3][v]);
    Store<kVectors>(panels.attrs, at, row, block * kBlock, sums);
  }
}

/*! `rows` rows of x, [k, kRows] with zeros beyond them. */
template <int kRows, DType kType>
void HalfRows(const Panels& panels, const Operands& at, int64_t row, int64_t rows, Range blocks) {
  for (int64_t block = blocks.begin; block < blocks.begin + blocks.size; ++block) {
    const char* weight = panels.packed + block * panels.block_bytes;
    const float* x = at.x;
    Vector sums[kRows][kVectors] = {};
    for (int64_t j = 0; j < panels.attrs.k; ++j, x += kRows) {
      for (int v = 0; v < kVectors; ++v, weight += kLanes * 2) {
        Vector some = {};
        Numbers<kType>(weight, some);
#pragma GCC unroll 32
        for (int r = 0; r < kRows; ++r) sums[r][v] += some * x[r];
      }
    }
    for (int64_t r = 0; r < rows; ++r) Store<kVectors>(panels.attrs, at, row + r, block * kBlock, sums[r]);
  }
}

/*! What computes up to so many rows. */
struct Tile {
  int rows;
  Function run[Panels::kKinds];
};

constexpr Tile OneRowTile() { return {1, {OneRow<4>, OneRow<8>, HalfRow<DType::kF16>, HalfRow<DType::kBF16>}}; }

template <int kRows>
constexpr Tile TileOf() {
  return {kRows, {SomeRows<kRows, 4>, SomeRows<kRows, 8>, HalfRows<kRows, DType::kF16>, HalfRows<kRows, DType::kBF16>}};
}
