// SPDX-License-Identifier: Apache-2.0
// Rows and columns of floats exchanged, in squares of kLanes vectors of kLanes floats. No guard: it is included behind
// vector_math.h in a namespace and for instructions of its own.

/*! Exchanges the blocks of kStep that lie off the diagonal of two rows. */
template <int kStep, int... kAt>
UIR_INLINE void SwapBlocks(Vector& a, Vector& b, std::integer_sequence<int, kAt...>) {
  const Vector first = __builtin_shufflevector(a, b, (kAt & kStep ? kLanes + kAt - kStep : kAt)...);
  b = __builtin_shufflevector(a, b, (kAt & kStep ? kLanes + kAt : kAt + kStep)...);
  a = first;
}

template <int kStep>
UIR_INLINE void TransposeSquare(Vector* rows) {
#pragma GCC unroll 16
  for (int at = 0; at < kLanes; ++at) {
    if (!(at & kStep)) SwapBlocks<kStep>(rows[at], rows[at + kStep], std::make_integer_sequence<int, kLanes>());
  }
  if constexpr (2 * kStep < kLanes) TransposeSquare<2 * kStep>(rows);
}

/*! Up to a square. */
UIR_INLINE void TransposeBlock(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                               int64_t to_row) {
  Vector x[kLanes];
  if (rows >= kLanes && columns >= kLanes) {
#pragma GCC unroll 16
    for (int at = 0; at < kLanes; ++at) x[at] = *reinterpret_cast<const Unaligned*>(from + at * from_row);
    TransposeSquare<1>(x);
#pragma GCC unroll 16
    for (int at = 0; at < kLanes; ++at) *reinterpret_cast<Unaligned*>(to + at * to_row) = x[at];
    return;
  }
  for (int64_t column = 0; column < std::min<int64_t>(columns, kLanes); ++column) {
    for (int64_t row = 0; row < std::min<int64_t>(rows, kLanes); ++row) {
      to[column * to_row + row] = from[row * from_row + column];
    }
  }
}

/*! `to`, rows `to_row` floats apart, of the columns of `from`. Where a side has a square and more, its last square
 * overlaps the one before. */
inline void Transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to, int64_t to_row) {
  for (int64_t row = 0; row < rows; row += kLanes) {
    const int64_t y = rows < kLanes ? row : std::min(row, rows - kLanes);
    for (int64_t column = 0; column < columns; column += kLanes) {
      const int64_t x = columns < kLanes ? column : std::min(column, columns - kLanes);
      TransposeBlock(from + y * from_row + x, from_row, rows - y, columns - x, to + x * to_row + y, to_row);
    }
  }
}
