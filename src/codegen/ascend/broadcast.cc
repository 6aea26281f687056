// SPDX-License-Identifier: Apache-2.0
// One column over all columns, one row over all rows.
#include <algorithm>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/elementwise.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/spread.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/vector.h"
#include "codegen/attributes.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Blocks from a repeat to the next that Copy can step over. */
constexpr int64_t kMostCopyStep = 4095;
/*! \brief Every row's block over its columns: by columns where rows are many, else by rows. */
void SpreadBlocks(Emitter& e, const Tile& target, const Tile& blocks, const Bound& rows) {
  int64_t each = kRepeatBytes / target.bytes, cols = target.cols, per = kBlockBytes / target.bytes;
  std::string type = ElementType(target.dtype);
  auto copy = [&](const std::string& to, const std::string& from, int64_t mask, const std::string& repeats,
                  int64_t to_step, int64_t from_step) {
    std::string params =
        e.Call("CopyRepeatParams", "struct", {}, {"1", "0", std::to_string(to_step), std::to_string(from_step)});
    return e.Call("Copy", "repeat", {type}, {to, from, std::to_string(mask), repeats, params}) + ";";
  };
  std::vector<std::string> lines;
  int64_t by_cols = CeilDiv(cols, each) * CeilDiv(rows.most(), kMostRepeats);
  if (rows.most() > 1 && by_cols <= rows.most() && RowBlocks(target) <= kMostCopyStep) {
    for (int64_t row = 0; row < rows.most(); row += kMostRepeats) {
      for (int64_t col = 0; col < cols; col += each) {
        lines.push_back(copy(e.At(target.Part(row, col, 1, 1)), e.At(blocks.Part(0, row * per, 1, 1)),
                             std::min(each, cols - col), RestText(rows, row, kMostRepeats), RowBlocks(target), 1));
      }
    }
  } else {
    std::string row = e.Fresh("r");
    std::string from = e.At(blocks, TimesText(row, per)), step = TimesText(row, target.row_stride);
    for (int64_t col = 0; col < cols;) {
      int64_t repeats = std::min(kMostRepeats, (cols - col) / each), mask = each;
      if (repeats == 0) {
        repeats = 1;
        mask = cols - col;
      }
      lines.push_back(copy(e.At(target.Part(0, col, 1, 1), step), from, mask, std::to_string(repeats), 8, 0));
      col += repeats * mask;
    }
    lines = Looped(row, "0", rows.text, lines);
  }
  Tile read = blocks, written = target;
  read.cols = rows.most() * per;
  written.rows = rows.most();
  e.Do("V", lines, {Reads(read), Writes(written)});
}

void BroadcastRow(Emitter& e, const Tile& target, const Tile& source) {
  EachBlocks(e, source, target.box.row_end, [&](int64_t row, int64_t most, const Tile& blocks, const Bound& n) {
    SpreadBlocks(e, target.Part(row, 0, most, target.cols), blocks, n);
  });
}

void BroadcastCol(Emitter& e, const Tile& target, const Tile& source) {
  Program p;
  Value made = CopyOf(p, p.Input(0, target.dtype), false);
  Tile row = source;
  row.rows = target.rows;
  row.row_stride = 0;
  RunOnWindows(e, p, made, {target, row}, target.box.row_end, Bound::Of(target.cols));
}

}  // namespace

void EmitBroadcast(Emitter& e, const IOp& iop) {
  if (TextAttr(iop->attrs, "scope") != "unit") {
    e.Refuse("A vector core shares nothing with others that it could broadcast to.", "scope unit");
  }
  bool row = IsByRow(iop);
  Tile t = e.TileOf(iop->targets[0]), s = e.TileOf(iop->sources[0]);
  bool words = t.bytes == 2 || t.bytes == 4;
  bool aligned = RowsAligned(t) && t.RowsDense() && (row || (s.align >= kBlockBytes && s.RowsDense()));
  // these write the first rows, whole: nothing outside of a box that says no more
  bool exact = t.box.row_begin.range.high <= 0 && t.box.AllCols(t.cols);
  if ((words || !row) && aligned && (exact || !e.SparesOutside(iop->targets[0]))) {
    (row ? BroadcastRow : BroadcastCol)(e, t, s);
    return;
  }
  // the same element or row again and again, as a layout
  Tile repeated = s;
  repeated.rows = t.rows;
  repeated.cols = t.cols;
  (row ? repeated.col_stride : repeated.row_stride) = 0;
  Relayout(e, t, repeated, t.box);
}

}  // namespace uir::codegen::ascend
