// SPDX-License-Identifier: Apache-2.0
// Rows and columns of elementwise iOps.
#include "codegen/ascend/spans.h"

#include <algorithm>
#include <utility>

namespace uir::codegen::ascend {
namespace {

/*! \brief Whether rows, with the gaps between them, can be worked on as one. */
bool IsFlat(Emitter& e, const ISlice& slice, const std::vector<Tile>& tiles, const Bound& cols, bool exact) {
  const Tile& target = tiles[0];
  bool alike =
      std::all_of(tiles.begin(), tiles.end(), [&](const Tile& tile) { return tile.row_stride == target.row_stride; });
  bool whole = cols.Constant() && cols.most() == target.cols;
  return alike && whole && (target.row_stride == target.cols || (!exact && GapsFree(e, slice)));
}

}  // namespace

bool RowsBeginLate(Emitter& e, const ISlice& slice, const std::vector<Tile>& tiles, bool exact) {
  const Tile& target = tiles[0];
  if (target.rows == 1 || std::all_of(tiles.begin(), tiles.end(), RowsAligned)) return false;
  Bound cols = Bound::Of(target.cols);
  if (exact || e.SparesOutside(slice)) cols = target.box.col_end - target.box.col_begin;
  return !IsFlat(e, slice, tiles, cols, exact);
}

bool BeginsAtBlocks(const std::vector<Tile>& tiles) {
  const Box& box = tiles[0].box;
  bool one_row = tiles[0].rows == 1;
  if (!box.col_begin.Constant() || !(one_row || box.row_begin.Constant())) return false;
  int64_t row = one_row ? 0 : box.row_begin.range.low, col = box.col_begin.range.low;
  return std::all_of(tiles.begin(), tiles.end(), [&](const Tile& tile) {
    return row * tile.row_stride * tile.bytes % kBlockBytes == 0 && col * tile.bytes % kBlockBytes == 0;
  });
}

Bound PartOf(Emitter& e, const Bound& count, const std::string& done, int64_t most) {
  std::string name = e.Fresh("count"), rest = "(" + count.text + ") - " + done, limit = std::to_string(most);
  e.Plain("const int32_t " + name + " = " + rest + " < 0 ? 0 : (" + rest + " < " + limit + " ? " + rest + " : " +
          limit + ");");
  return {name, {0, most}};
}

Bound NotNegative(const Bound& count) {
  if (count.least() >= 0) return count;
  return {"(" + count.text + " < 0 ? 0 : " + count.text + ")", {0, count.most()}};
}

Span SpanOf(Emitter& e, const ISlice& slice, std::vector<Tile> tiles, bool exact) {
  Span span;
  span.windows = std::move(tiles);
  const Tile target = span.windows[0];
  bool spares = exact || e.SparesOutside(slice), one_row = target.rows == 1;
  for (const Tile& tile : span.windows) {
    if (tile.memory != "ub")
      e.Refuse("A vector function works in the unified buffer, not in dram.", "a move before it");
    if (!tile.RowsDense() || tile.align < kBlockBytes) {
      e.Refuse(
          "A slice of " + tile.tensor + " does not start at a block of the unified buffer, or its columns lie apart.",
          "an offset that is a multiple of 32 bytes, columns that follow each other",
          e.Text(tile.offset.Scale(tile.bytes)) + " bytes", "another layout of the slice");
    }
  }
  // the first row and column: of the box only where others must stay as they are
  int64_t row = 0, col = 0;
  Bound row_begin = Bound::Of(0), col_begin = Bound::Of(0);
  if (spares) {
    TVM_FFI_CHECK(BeginsAtBlocks(span.windows), InternalError) << "a box that begins within a block";
    // where a single row begins only says whether it is there
    if (!one_row) row_begin = target.box.row_begin;
    col_begin = target.box.col_begin;
    row = row_begin.range.low;
    col = col_begin.range.low;
  }
  span.rows = target.box.row_end - row_begin;
  Bound col_end = spares || one_row ? target.box.col_end : Bound::Of(target.cols);
  span.cols = col_end - col_begin;
  for (Tile& tile : span.windows) tile = tile.Part(row, col, target.rows - row, target.cols - col);
  if (one_row) {
    span.flat = true;
    // an empty row is an empty box
    if (spares) span.rows = target.box.row_end - target.box.row_begin;
    if (!span.rows.Constant()) {
      span.cols = {"(" + span.rows.text + " > 0 ? " + span.cols.text + " : 0)", {0, span.cols.most()}};
    }
    if (span.rows.most() <= 0) span.cols = Bound::Of(0);
    span.rows = Bound::Of(1);
    return span;
  }
  std::vector<Tile> whole = span.windows;
  whole[0] = target;
  span.flat = IsFlat(e, slice, whole, span.cols, exact);
  if (span.flat) {
    int64_t pitch = target.row_stride, gap = pitch - target.cols;
    Bound count = span.rows * pitch - Bound::Of(gap);
    for (Tile& tile : span.windows) {
      tile.rows = 1;
      tile.cols = count.most();
      tile.row_stride = count.most();
      tile.box = {Bound::Of(0), Bound::Of(1), Bound::Of(0), Bound::Of(count.most())};
    }
    span.cols = count;
    span.rows = Bound::Of(1);
    return span;
  }
  for (const Tile& tile : span.windows) {
    if (!RowsAligned(tile)) {
      e.Refuse("Rows of " + tile.tensor + " do not start at blocks of the unified buffer.",
               "a row pitch that is a multiple of 32 bytes", std::to_string(tile.row_stride * tile.bytes) + " bytes",
               "the pass align_rows");
    }
  }
  return span;
}

}  // namespace uir::codegen::ascend
