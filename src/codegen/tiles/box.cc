// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/box.h"

#include <algorithm>

#include "codegen/printer.h"
#include "codegen/tiles/emitter.h"
#include "codegen/tiles/lines.h"

namespace uir::codegen::tiles {

namespace {

/*! \brief The smaller or the greater of two bounds, named where only the run knows. */
Bound Extreme(Emitter& e, const Bound& a, const Bound& b, bool smaller, const std::string& hint) {
  if (a.text == b.text) return a;
  if (a.range.high <= b.range.low) return smaller ? a : b;
  if (b.range.high <= a.range.low) return smaller ? b : a;
  Range range = smaller ? Range{std::min(a.range.low, b.range.low), std::min(a.range.high, b.range.high)}
                        : Range{std::max(a.range.low, b.range.low), std::max(a.range.high, b.range.high)};
  std::string name = e.Fresh(hint);
  const std::string type = range.high > INT32_MAX ? "int64_t " : "int32_t ";
  e.Plain("const " + type + name + " = " + a.text + (smaller ? " < " : " > ") + b.text + " ? " + a.text + " : " +
          b.text + ";");
  return {name, range};
}

bool SameBound(const Bound& a, const Bound& b) {
  return a.text == b.text && a.range.low == b.range.low && a.range.high == b.range.high;
}

}  // namespace

Bound Smaller(Emitter& e, const Bound& a, const Bound& b, const std::string& hint) {
  return Extreme(e, a, b, true, hint);
}

Bound Greater(Emitter& e, const Bound& a, const Bound& b, const std::string& hint) {
  return Extreme(e, a, b, false, hint);
}

Bound AtLeastZero(Emitter& e, const Bound& count, const std::string& hint) {
  if (count.range.low >= 0 || count.Constant()) return count.range.high < 0 ? Bound::Of(0) : count;
  return Greater(e, count, Bound::Of(0), hint);
}

Bound EndInRow(const Box& box, int64_t row) {
  if (row < box.row_begin.range.low || row >= box.row_end.range.high) return box.col_begin;
  std::vector<std::string> conditions;
  std::string number = std::to_string(row);
  if (row < box.row_begin.range.high) conditions.push_back(box.row_begin.Text(Precedence::kProduct) + " <= " + number);
  if (row >= box.row_end.range.low) conditions.push_back(number + " < " + box.row_end.Text(Precedence::kProduct));
  if (conditions.empty()) return box.col_end;
  return {"(" + Join(conditions, " && ") + " ? " + box.col_end.text + " : " + box.col_begin.text + ")",
          {std::min(box.col_begin.range.low, box.col_end.range.low),
           std::max(box.col_begin.range.high, box.col_end.range.high)}};
}

Box Both(Emitter& e, const Box& a, const Box& b) {
  return {Extreme(e, a.row_begin, b.row_begin, false, "row_begin"), Extreme(e, a.row_end, b.row_end, true, "row_end"),
          Extreme(e, a.col_begin, b.col_begin, false, "col_begin"), Extreme(e, a.col_end, b.col_end, true, "col_end")};
}

bool SameBox(const Box& a, const Box& b) {
  return SameBound(a.row_begin, b.row_begin) && SameBound(a.row_end, b.row_end) &&
         SameBound(a.col_begin, b.col_begin) && SameBound(a.col_end, b.col_end);
}

Box Turned(const Box& box) { return {box.col_begin, box.col_end, box.row_begin, box.row_end}; }

bool ShareBytes(const Tile& a, const Tile& b) {
  return a.memory == b.memory && a.base < b.base + b.size * b.bytes && b.base < a.base + a.size * a.bytes;
}

bool SameBytes(const Tile& a, const Tile& b) {
  bool rows = a.rows == 1 || a.row_stride == b.row_stride, cols = a.cols == 1 || a.col_stride == b.col_stride;
  Affine distance = a.offset.Scale(a.bytes) - b.offset.Scale(b.bytes) + Affine::Constant(a.base - b.base);
  if (a.OpenStrides() || b.OpenStrides()) return false;
  return a.memory == b.memory && a.bytes == b.bytes && distance->terms.empty() && distance->constant == 0 && rows &&
         cols;
}

void InParts(Emitter& e, const Tile& to, const Tile& from, int64_t some,
             const std::function<void(const Tile& to, const Tile& from)>& move) {
  for (int64_t first = 0; first < to.rows; first += some) {
    const int64_t rows = std::min(some, to.rows - first);
    auto part = [&](const Tile& tile) {
      Tile piece = tile.Part(first, 0, rows, to.cols);
      Box moved = tile.box;
      moved.row_begin = tile.box.row_begin - Bound::Of(first);
      moved.row_end = tile.box.row_end - Bound::Of(first);
      piece.box = rows == to.rows ? tile.box : Both(e, moved, Box::Of(rows, to.cols));
      return piece;
    };
    const Tile source = part(from);
    move(part(to), source);
  }
}

std::vector<std::string> OverRows(const std::string& row, const Box& box, const std::vector<std::string>& lines) {
  return Looped(row, box.row_begin.text, box.row_end.text, lines);
}

std::vector<std::string> OverCols(const std::string& col, const Box& box, const std::vector<std::string>& lines) {
  return Looped(col, box.col_begin.text, box.col_end.text, lines);
}

std::vector<std::string> OverBox(const std::string& row, const std::string& col, const Box& box,
                                 const std::vector<std::string>& lines) {
  return OverRows(row, box, OverCols(col, box, lines));
}

std::string OutsideText(const Tile& tile, const Box& box) {
  std::vector<std::string> parts;
  auto may = [&](const Bound& bound, const std::string& relation, int64_t edge, bool always) {
    if (!always) parts.push_back(bound.Text(Precedence::kProduct) + relation + std::to_string(edge));
  };
  may(box.row_begin, " > ", 0, box.row_begin.range.high <= 0);
  may(box.row_end, " < ", tile.rows, box.row_end.range.low >= tile.rows);
  may(box.col_begin, " > ", 0, box.col_begin.range.high <= 0);
  may(box.col_end, " < ", tile.cols, box.col_end.range.low >= tile.cols);
  bool always = box.row_begin.range.low > 0 || box.row_end.range.high < tile.rows || box.col_begin.range.low > 0 ||
                box.col_end.range.high < tile.cols;
  return always ? "" : Join(parts, " || ");
}

}  // namespace uir::codegen::tiles
