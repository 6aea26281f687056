// SPDX-License-Identifier: Apache-2.0
// A slice in memory of a core or in global memory, as the emitters of iOps see it.
#pragma once

#include <optional>
#include <string>

#include "codegen/pipes/tree.h"
#include "codegen/scope.h"
#include "codegen/tiles/bound.h"
#include "igraph/nodes.h"

namespace uir::codegen::tiles {

/*! \brief The valid box of a slice: rows [row_begin, row_end), columns [col_begin, col_end). */
struct Box {
  Bound row_begin, row_end, col_begin, col_end;

  /*! \brief Whether it is the whole shape, proved. */
  bool Whole(int64_t rows, int64_t cols) const { return AllRows(rows) && AllCols(cols); }
  bool AllRows(int64_t rows) const { return row_begin.range.high <= 0 && row_end.range.low >= rows; }
  bool AllCols(int64_t cols) const { return col_begin.range.high <= 0 && col_end.range.low >= cols; }
  /*! \brief The box of a whole tile. */
  static Box Of(int64_t rows, int64_t cols) { return {Bound::Of(0), Bound::Of(rows), Bound::Of(0), Bound::Of(cols)}; }
};

/*! \brief A 2-D strided piece of memory: element (i, j) is at `offset + i*row_stride + j*col_stride`, in elements. */
struct Tile {
  /*! \brief Text of the tensor or typed pointer that `offset` counts from. */
  std::string tensor;
  /*! \brief The dtype in the graph ("fp32", "bool"). */
  std::string dtype;
  /*! \brief What the planner of syncs calls the memory: "ub", "nram", ..., or the name of the dram pointer. */
  std::string memory;
  /*! \brief Byte of `memory` at which `tensor` begins. */
  int64_t base = 0;
  /*! \brief Elements of `tensor`. */
  int64_t size = 0;
  Affine offset = Affine::Constant(0);
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  /*! \brief Strides that sizes decide. In global memory the stride of that side is then `kOpenStride`, on chip the most
   * that it may be. */
  std::optional<Affine> row_pitch, col_pitch;
  /*! \brief With a `row_pitch`: whether that many columns of every row are in the box. */
  bool full_rows = false;
  /*! \brief Bytes of an element. */
  int64_t bytes = 4;
  /*! \brief Power of two (up to 512) that the byte address of element (0, 0) is proved to be a multiple of. */
  int64_t align = 1;
  Box box;

  /*! \brief Whether the columns of a row follow each other without a gap. */
  bool RowsDense() const { return col_stride == 1 || cols == 1; }
  /*! \brief Whether sizes decide a stride. */
  bool OpenStrides() const { return row_pitch || col_pitch; }
  /*! \brief Whether all elements follow each other without a gap, row by row. */
  bool Dense() const { return RowsDense() && (rows == 1 || (row_stride == cols && !row_pitch)); }
  /*! \brief Elements from element (0, 0) to the last one, gaps included. */
  int64_t Span() const { return (rows - 1) * row_stride + (cols - 1) * col_stride + 1; }

  /*! \brief The piece of `rows` x `cols` at (row, col); its box is whole. */
  Tile Part(int64_t row, int64_t col, int64_t rows, int64_t cols) const;
  /*! \brief The same bytes as one row of `Span()` elements. */
  Tile Flat() const;
  /*! \brief The smallest piece of which it is known that it holds a box. */
  Tile Around(const Box& box) const;
  /*! \brief Rows and columns exchanged. */
  Tile Turned() const;
  /*! \brief The bytes of the whole tile, as the sync planner wants them. */
  pipes::Region Region(bool write) const;
};

/*! \brief What a call reads, what it writes. */
inline pipes::Region Reads(const Tile& tile) { return tile.Region(false); }
inline pipes::Region Writes(const Tile& tile) { return tile.Region(true); }

}  // namespace uir::codegen::tiles
