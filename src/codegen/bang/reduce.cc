// SPDX-License-Identifier: Apache-2.0
/*!
 * \file reduce.cc
 * \brief Reductions: floats by folding rows, after a transposition where columns are folded; integers by scalar code.
 */
#include "reduce.h"

#include <algorithm>
#include <limits>

#include "../number.h"
#include "api.h"
#include "copy.h"
#include "elementwise.h"
#include "fill.h"
#include "functions_int.h"
#include "group.h"
#include "ops.h"
#include "run.h"
#include "scalar_loop.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

/*! \brief Work buffers of one reduction take at most this much where more is free. */
constexpr int64_t kMostWork = 96 * 1024;

std::string PairOf(const std::string& op) {
  if (op == "max") return "nan_maximum";
  if (op == "min") return "nan_minimum";
  return op;
}

double IdentityOf(const std::string& op) {
  double infinity = std::numeric_limits<double>::infinity();
  return op == "add" ? 0 : op == "mul" ? 1 : op == "max" ? -infinity : infinity;
}

std::string Fold(Emitter& e, const std::string& op, const Tile& work, int64_t to, int64_t a, int64_t b, int64_t n) {
  auto at = [&](int64_t element) { return e.At(work, std::to_string(element)); };
  return Table().Call(e.where(), "__bang_" + PairOf(op), "count", {"float"}, {at(to), at(a), at(b), std::to_string(n)},
                      std::to_string(e.arch())) +
         ";";
}

/*! \brief Rows of a dense work buffer of fp32 onto each other until the first holds all. */
void FoldRows(Emitter& e, const std::string& op, const Tile& work, int64_t rows, int64_t cols) {
  std::vector<std::string> lines;
  while (rows > 1) {
    int64_t half = (rows + 1) / 2;
    lines.push_back(Fold(e, op, work, 0, 0, half * cols, (rows - half) * cols));
    rows = half;
  }
  if (!lines.empty()) e.Do("COMPUTE", lines, {Reads(work), Writes(work)});
}

/*! \brief Rows [first, first + rows) and columns of a tile with what is left of its box there. */
Tile PartOf(Emitter& e, const Tile& tile, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  Tile part = tile.Part(row, col, rows, cols);
  auto moved = [&](const Bound& bound, int64_t by, int64_t most) {
    if (bound.Constant()) return Bound::Of(std::clamp<int64_t>(bound.range.low - by, 0, most));
    if (by == 0 && bound.range.high <= most && bound.range.low >= 0) return bound;
    std::string limit = std::to_string(most), shifted = bound.text + " - " + std::to_string(by);
    std::string name = e.Fresh("end");
    e.Plain("const int32_t " + name + " = " + shifted + " < 0 ? 0 : " + shifted + " < " + limit + " ? " + shifted +
            " : " + limit + ";");
    Bound out = bound;
    out.text = name;
    out.range.low = std::clamp<int64_t>(bound.range.low - by, 0, most);
    out.range.high = std::clamp<int64_t>(bound.range.high - by, 0, most);
    return out;
  };
  part.box = {moved(tile.box.row_begin, row, rows), moved(tile.box.row_end, row, rows),
              moved(tile.box.col_begin, col, cols), moved(tile.box.col_end, col, cols)};
  return part;
}

/*! \brief A part of a tile in fp32, the identity outside of its box. */
void Gathered(Emitter& e, const Tile& work, const Tile& part, double identity) {
  if (!part.box.Whole(part.rows, part.cols)) FillTile(e, work, ffi::Any(identity));
  if (part.box.row_end.range.high <= part.box.row_begin.range.low) return;
  if (part.box.col_end.range.high <= part.box.col_begin.range.low) return;
  ConvertTile(e, work, part, part.box, true);
}

void ReduceCols(Emitter& e, const Tile& to, const Tile& from, const std::string& op) {
  int64_t cols = from.cols, fits = std::max<int64_t>(1, std::min(kMostWork, e.FreeBytes() / 3) / (cols * 4));
  int64_t rows = std::min(from.rows, fits);
  Tile sum = e.Work("fp32", rows, cols);
  Gathered(e, sum, PartOf(e, from, 0, 0, rows, cols), IdentityOf(op));
  if (rows < from.rows) {
    Tile next = e.Work("fp32", rows, cols);
    for (int64_t row = rows; row < from.rows; row += rows) {
      int64_t n = std::min(rows, from.rows - row);
      Gathered(e, next.Part(0, 0, n, cols), PartOf(e, from, row, 0, n, cols), IdentityOf(op));
      BinaryTile(e, op, sum.Part(0, 0, n, cols), sum.Part(0, 0, n, cols), next.Part(0, 0, n, cols));
    }
  }
  FoldRows(e, op, sum, rows, cols);
  Tile first = sum.Part(0, 0, 1, cols);
  ConvertTile(e, to, first, to.box, true);
}

void ReduceRows(Emitter& e, const Tile& to, const Tile& from, const std::string& op) {
  int64_t cols = from.cols, fits = std::max<int64_t>(1, std::min(kMostWork, e.FreeBytes() / 3) / (cols * 4));
  int64_t rows = std::min(from.rows, fits);
  Tile work = e.Work("fp32", rows, cols), turned = e.Work("fp32", cols, rows);
  for (int64_t row = 0; row < from.rows; row += rows) {
    int64_t n = std::min(rows, from.rows - row);
    Gathered(e, work.Part(0, 0, n, cols), PartOf(e, from, row, 0, n, cols), IdentityOf(op));
    Tile folded = work;
    if (n > 1 && cols > 1) {
      e.Do("COMPUTE",
           Table().Call(e.where(), "__bang_transpose", "count", {"float"},
                        {e.At(turned), e.At(work), std::to_string(n), std::to_string(cols)}, std::to_string(e.arch())) +
               ";",
           {Reads(work), Writes(turned)});
      folded = turned;
    }
    FoldRows(e, op, folded, cols, n);
    Tile column = folded;
    column.rows = n;
    column.cols = 1;
    column.row_stride = 1;
    column.box = Box::Of(n, 1);
    Tile part = PartOf(e, to, row, 0, n, 1);
    if (to.rows == n) part.box = to.box;
    Tile target = AsRow(part), source = AsRow(column);
    if (target.rows != source.rows) {
      target = part;
      source = column;
    }
    ConvertTile(e, target, source, target.box, true);
  }
}

/*! \brief One element after the other, in the dtype itself. */
void ReduceWhole(Emitter& e, const Tile& to, const Tile& from, const std::string& op, bool rows) {
  const ScalarType& type = TypeOf(to.dtype);
  int64_t low = LowestInt(type.kind, type.bytes);
  uint64_t high = HighestInt(type.kind, type.bytes);
  std::string start = op == "add"   ? "0"
                      : op == "mul" ? "1"
                      : op == "max" ? ElementIntLiteral(low, "int64_t")
                                    : ElementIntLiteral(static_cast<int64_t>(high), "uint64_t");
  std::string outer = e.Fresh("i"), inner = e.Fresh("j"), sum = e.Fresh("sum"), stored = type.stored;
  std::string element = rows ? e.Element(from, outer, inner) : e.Element(from, inner, outer);
  std::vector<std::string> step = IntBinary(to.dtype, op, sum, sum, element);
  if (step.empty()) {
    e.Refuse("A core of an MLU cannot reduce " + to.dtype + " by " + op + ".", "", "", "run this operator on the host");
  }
  const Bound& begin = rows ? from.box.col_begin : from.box.row_begin;
  const Bound& end = rows ? from.box.col_end : from.box.row_end;
  std::vector<std::string> lines = {stored + " " + sum + " = (" + stored + ")" + start + ";"};
  for (std::string& line : Looped(inner, begin.text, end.text, step)) lines.push_back(std::move(line));
  const Bound& first = rows ? to.box.row_begin : to.box.col_begin;
  const Bound& last = rows ? to.box.row_end : to.box.col_end;
  const Bound& held_begin = rows ? from.box.row_begin : from.box.col_begin;
  const Bound& held_end = rows ? from.box.row_end : from.box.col_end;
  bool all = rows ? from.box.AllRows(from.rows) : from.box.AllCols(from.cols);
  if (!all) {
    // what lies outside of the source's box is the identity
    lines[1].insert(0, "if (" + held_begin.text + " <= " + outer + " && " + outer + " < " + held_end.text + ") ");
  }
  lines.push_back((rows ? e.Element(to, outer, "0") : e.Element(to, "0", outer)) + " = " + sum + ";");
  e.Note("scalar code, some tens of cycles for an element");
  e.Do("S", Looped(outer, first.text, last.text, lines), {Writes(to), Reads(from)});
}

}  // namespace

void ReduceTile(Emitter& e, const Tile& to, const Tile& from, const std::string& op, const std::string& axis) {
  bool rows = axis == "row";
  if (IsWhole(to.dtype)) {
    ReduceWhole(e, to, from, op, rows);
  } else {
    (rows ? ReduceRows : ReduceCols)(e, to, from, op);
  }
}

void EmitReduce(Emitter& e, const IOp& iop) {
  if (IsGroupForm(iop)) return EmitGroupReduce(e, iop);
  ReduceTile(e, e.TileOf(iop->targets[0]), e.TileOf(iop->sources[0]), std::string(iop->name),
             std::string(iop->attrs.at("axis").cast<ffi::String>()));
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
