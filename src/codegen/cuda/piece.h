// SPDX-License-Identifier: Apache-2.0
// Which piece of a pointer a slice is.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "igraph/nodes.h"

namespace uir::codegen::cuda {

/*! \brief Where the elements of a slice at a constant offset lie; strides of sides of length 1 are 0. */
struct Piece {
  int64_t offset = 0, rows = 1, cols = 1, row_stride = 0, col_stride = 0;

  Piece() = default;
  Piece(int64_t offset, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride)
      : offset(offset),
        rows(rows),
        cols(cols),
        row_stride(rows == 1 ? 0 : row_stride),
        col_stride(cols == 1 ? 0 : col_stride) {}
  explicit Piece(const ISlice& slice)
      : Piece(slice->offset->constant, slice->rows, slice->cols, slice->row_stride, slice->col_stride) {}

  bool operator==(const Piece& other) const { return Key() == other.Key(); }
  bool operator<(const Piece& other) const { return Key() < other.Key(); }

  /*! \brief Rows as columns. */
  Piece Turned() const { return Piece(offset, cols, rows, col_stride, row_stride); }
  /*! \brief Whether the elements follow each other row by row. */
  bool Linear() const { return (cols == 1 || col_stride == 1) && (rows == 1 || row_stride == cols); }

 private:
  std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t> Key() const {
    return {offset, rows, cols, row_stride, col_stride};
  }
};

/*! \brief The same elements with rows and columns exchanged. */
inline ISlice Turned(const ISlice& slice) {
  auto node = ffi::make_object<ISliceNode>(*slice.get());
  std::swap(node->rows, node->cols);
  std::swap(node->row_stride, node->col_stride);
  std::swap(node->row_pitch, node->col_pitch);
  std::swap(node->row_begin, node->col_begin);
  std::swap(node->row_end, node->col_end);
  return ISlice(node);
}

}  // namespace uir::codegen::cuda
