// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/transfer.h"
#include "codegen/ascend/transpose.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief An element for each block, row after row. */
void Scattered(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  int64_t block = kBlockBytes / to.bytes;
  int64_t some = std::min(to.cols, std::max<int64_t>(e.FreeBytes() / 2 / kBlockBytes, 1));
  Tile work = e.Work(to.dtype, some, 1);
  e.Note("stores " + std::to_string(to.rows * to.cols) + " elements from a block each");
  for (int64_t row = 0; row < to.rows; ++row) {
    for (int64_t first = 0; first < to.cols; first += some) {
      int64_t cols = std::min(some, to.cols - first);
      Tile part = work.Part(0, 0, cols, 1), column = to.Part(row, first, 1, cols).Turned();
      Box frame = box;
      frame.col_begin = box.col_begin - Bound::Of(first);
      frame.col_end = box.col_end - Bound::Of(first);
      frame = Both(e, frame, {box.row_begin, box.row_end, Bound::Of(0), Bound::Of(cols)});
      Bound end = EndInRow(frame, row);
      Tile placed = part.Turned();
      placed.col_stride = block;
      Relayout(e, placed, from.Part(row, first, 1, cols), {Bound::Of(0), Bound::Of(1), frame.col_begin, end});
      Transfer(e, part, column, {frame.col_begin, end, Bound::Of(0), Bound::Of(1)}, false);
    }
  }
}

}  // namespace

void Store(Emitter& e, Tile to, Tile from) {
  if (to.cols == 1 && to.rows > 1) {
    to = to.Turned();
    from = from.Turned();
  }
  if (to.cols == 1) {
    to.col_stride = from.col_stride = 1;
    to.col_pitch.reset();
  }
  Box box = Both(e, to.box, from.box);
  bool at_block = box.col_begin.Constant() && box.col_begin.range.low % (kBlockBytes / to.bytes) == 0;
  if (to.RowsDense() && from.RowsDense() && RowsAligned(from) && at_block) {
    Transfer(e, from, to, box, false);
  } else if (to.RowsDense() && box.col_begin.Constant()) {
    // what comes before the first column stays behind
    int64_t first = box.col_begin.range.low, cols = to.cols - first;
    Box moved = box;
    moved.col_begin = Bound::Of(0);
    moved.col_end = box.col_end - Bound::Of(first);
    Tile work = e.Work(to.dtype, to.rows, cols);
    Relayout(e, work, from.Part(0, first, to.rows, cols), moved);
    Transfer(e, work, to.Part(0, first, to.rows, cols), moved, false);
  } else if (to.row_stride == 1 && box.row_begin.Constant() && box.row_begin.range.low == 0) {
    Tile work = e.Work(to.dtype, to.cols, to.rows);
    Box turned{box.col_begin, box.col_end, box.row_begin, box.row_end};
    Turn(e, work, from.Turned(), turned, true);
    Transfer(e, work, to.Turned(), turned, false);
  } else {
    Scattered(e, to, from, box);
  }
}

}  // namespace uir::codegen::ascend
