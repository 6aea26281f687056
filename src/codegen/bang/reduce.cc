// SPDX-License-Identifier: Apache-2.0
// Reductions: floats by folding rows, after a transposition where columns are folded; integers by scalar code.
#include <algorithm>
#include <limits>

#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/elementwise.h"
#include "codegen/bang/functions_int.h"
#include "codegen/bang/group.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/scalar_loop.h"
#include "codegen/bang/tile_ops.h"
#include "codegen/number.h"

namespace uir::codegen::bang {

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

/*! \brief Whether a tile of fp32 is one run of elements, all of them valid. */
bool IsFloatRun(const Tile& tile) {
  return tile.dtype == "fp32" && tile.Dense() && tile.box.Whole(tile.rows, tile.cols);
}

//! \brief Rows of a dense tile of fp32 onto each other, at least two, until one holds all.
//! \param from The rows; `work` itself, or what must stay.
//! \param work Where sums are on their way.
//! \param to Where the last one goes: a run, or the first row of `work`.
void FoldRows(Emitter& e, const std::string& op, const Tile& from, const Tile& work, const Tile& to, int64_t rows,
              int64_t cols) {
  struct Step {
    const Tile* left;
    const Tile* right;
    int64_t at;
    int64_t rows;
  };
  std::vector<Step> steps;
  if (from.tensor != work.tensor) {
    int64_t half = rows / 2;
    steps.push_back({&from, &from, half, half});
    if (rows % 2 == 1) steps.push_back({&work, &from, rows - 1, 1});
    rows = half;
  }
  for (; rows > 1; rows = (rows + 1) / 2) steps.push_back({&work, &work, (rows + 1) / 2, rows / 2});
  std::vector<std::string> lines;
  for (const Step& step : steps) {
    const Tile& target = &step == &steps.back() ? to : work;
    std::vector<std::string> args = {e.At(target), e.At(*step.left), e.At(*step.right, std::to_string(step.at * cols)),
                                     std::to_string(step.rows * cols)};
    lines.push_back(Table().Call(e.where(), "__bang_" + PairOf(op), "count", {"float"}, args, e.platform()) + ";");
  }
  e.Do("COMPUTE", lines, {Reads(from), Reads(work), Writes(work), Writes(to)});
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

/*! \brief The first row of a work buffer with all rows folded onto it, or `to` where it takes them. */
Tile Folded(Emitter& e, const std::string& op, const Tile& from, const Tile& work, const Tile& to, int64_t rows,
            int64_t cols) {
  Tile first = work.Part(0, 0, 1, cols);
  first.rows = 1;
  first.cols = cols;
  first.col_stride = 1;
  first.box = Box::Of(1, cols);
  Tile row = AsRow(to);
  const Tile& target = row.rows == 1 && row.cols == cols && IsFloatRun(row) ? row : first;
  if (rows == 1) return from.tensor == work.tensor ? first : from;
  FoldRows(e, op, from, work, target, rows, cols);
  return target;
}

void ReduceCols(Emitter& e, const Tile& to, const Tile& from, const std::string& op) {
  int64_t cols = from.cols, fits = std::max<int64_t>(1, std::min(kMostWork, e.FreeBytes() / 3) / (cols * 4));
  int64_t rows = std::min(from.rows, fits);
  Tile sum = e.Work("fp32", rows, cols);
  bool straight = rows == from.rows && rows > 1 && IsFloatRun(from);
  if (!straight) Gathered(e, sum, PartOf(e, from, 0, 0, rows, cols), IdentityOf(op));
  if (rows < from.rows) {
    Tile next = e.Work("fp32", rows, cols);
    for (int64_t row = rows; row < from.rows; row += rows) {
      int64_t n = std::min(rows, from.rows - row);
      Gathered(e, next.Part(0, 0, n, cols), PartOf(e, from, row, 0, n, cols), IdentityOf(op));
      BinaryTile(e, op, sum.Part(0, 0, n, cols), sum.Part(0, 0, n, cols), next.Part(0, 0, n, cols));
    }
  }
  Tile made = Folded(e, op, straight ? from : sum, sum, to, rows, cols);
  if (made.tensor != to.tensor) ConvertTile(e, to, made, to.box, true);
}

/*! \brief Elements of fp32 in what a vector instruction takes a cycle. */
constexpr int64_t kLanes = kBlockBytes / 4;
/*! \brief Cycles before an instruction's first result, and of a transposition: what halvings of a row are chosen by. */
constexpr int64_t kStart = 20, kTurning = 2;
/*! \brief The longest step of a pool. */
constexpr int64_t kMostStride = 1023;

/*! \brief Sums of `kLanes` interleaved parts of each row, by one instruction; its order of addition is the device's. */
Tile LaneSums(Emitter& e, const Tile& from) {
  Tile lanes = e.Work("fp32", from.rows, kLanes);
  std::string width = std::to_string(from.cols / kLanes), rows = std::to_string(from.rows);
  e.Do("COMPUTE",
       Table().Call(e.where(), "__bang_sumpool", "count", {"float"},
                    {e.At(lanes), e.At(from), std::to_string(kLanes), rows, width, "1", width, width, "1"},
                    e.platform()) +
           ";",
       {Reads(from), Writes(lanes)});
  return lanes;
}

/*! \brief How often rows are halved before the rest is turned: what takes the fewest cycles. */
int64_t Halvings(int64_t rows, int64_t cols) {
  int64_t best = 0, least = 0;
  for (int64_t k = 0; cols % (int64_t{1} << k) == 0 && cols >> k >= kLanes; ++k) {
    int64_t left = cols >> k;
    int64_t turned = rows > 1 ? (kTurning + 1) * left / kLanes : left / kLanes;
    int64_t cycles = (cols - left) / kLanes + kStart * k + turned;
    if (k == 0 || cycles < least) {
      best = k;
      least = cycles;
    }
  }
  return best;
}

/*! \brief Halves of each row onto each other, some times. */
Tile HalvedRows(Emitter& e, const Tile& from, const std::string& op, int64_t times) {
  int64_t half = from.cols / 2, left = from.cols >> times;
  Tile made = e.Work("fp32", from.rows, left), between = made;
  if (times > 1) between = e.Work("fp32", from.rows, half);
  std::string row = e.Fresh("r");
  std::vector<std::string> lines;
  Tile source = from;
  for (int64_t k = 1; k <= times; ++k) {
    int64_t width = from.cols >> k;
    const Tile& to = k == times ? made : between;
    auto at = [&](const Tile& tile, int64_t col) {
      std::string start = tile.rows == 1 ? "" : row + " * " + std::to_string(tile.row_stride);
      if (col > 0) start += (start.empty() ? "" : " + ") + std::to_string(col);
      return e.At(tile, start);
    };
    lines.push_back(Table().Call(e.where(), "__bang_" + PairOf(op), "count", {"float"},
                                 {at(to, 0), at(source, 0), at(source, width), std::to_string(width)}, e.platform()) +
                    ";");
    source = between;
  }
  std::vector<pipes::Region> regions = {Reads(from), Writes(made)};
  if (times > 1) {
    regions.push_back(Reads(between));
    regions.push_back(Writes(between));
  }
  if (from.rows > 1) lines = Looped(row, "0", std::to_string(from.rows), lines);
  e.Do("COMPUTE", lines, regions);
  return made;
}

/*! \brief Rows of fp32 as shorter ones with the same result; the tile itself where that does not pay. */
Tile Shortened(Emitter& e, const Tile& from, const std::string& op) {
  bool plain = from.dtype == "fp32" && from.memory == kNram && from.RowsDense() &&
               from.box.Whole(from.rows, from.cols) && from.cols % kLanes == 0 && from.cols > kLanes;
  if (!plain) return from;
  if (op == "add" && from.Dense() && from.cols / kLanes <= kMostStride && from.rows * kLanes * 4 * 4 < e.FreeBytes())
    return LaneSums(e, from);
  int64_t times = Halvings(from.rows, from.cols);
  if (times == 0 || from.rows * from.cols * 4 > e.FreeBytes()) return from;
  return HalvedRows(e, from, op, times);
}

void ReduceRows(Emitter& e, const Tile& to, const Tile& whole, const std::string& op) {
  Tile from = Shortened(e, whole, op);
  int64_t cols = from.cols, fits = std::max<int64_t>(1, std::min(kMostWork, e.FreeBytes() / 3) / (cols * 4));
  int64_t rows = std::min(from.rows, fits);
  Tile work = e.Work("fp32", rows, cols), turned = e.Work("fp32", cols, rows);
  for (int64_t row = 0; row < from.rows; row += rows) {
    int64_t n = std::min(rows, from.rows - row);
    Tile part = PartOf(e, from, row, 0, n, cols), folded = work;
    bool turns = n > 1 && cols > 1;
    if (!(turns && IsFloatRun(part))) {
      Tile rest = work.Part(0, 0, n, cols);
      Gathered(e, rest, part, IdentityOf(op));
      part = rest;
    }
    if (turns) {
      e.Do("COMPUTE",
           Table().Call(e.where(), "__bang_transpose", "count", {"float"},
                        {e.At(turned), e.At(part), std::to_string(n), std::to_string(cols)}, e.platform()) +
               ";",
           {Reads(part), Writes(turned)});
      folded = turned;
    }
    Tile result = PartOf(e, to, row, 0, n, 1);
    if (to.rows == n) result.box = to.box;
    Tile made = Folded(e, op, folded, folded, result, cols, n);
    if (made.tensor == to.tensor) continue;
    Tile target = AsRow(result);
    if (target.rows != made.rows) {
      target = result;
      made.rows = n;
      made.cols = made.row_stride = 1;
      made.box = Box::Of(n, 1);
    }
    ConvertTile(e, target, made, target.box, true);
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

namespace {

//! \brief Rows of open length, turned as they are: those of what is turned are folded up to that length.
//!
//! So no end of a row is filled, and rows that are not there take no time.  Halves, and the order in which they are
//! added, are those of rows of one length.
//! \return Whether that may be, and takes less time than to fill the ends.
bool ReduceTurned(Emitter& e, const IOp& iop, const Tile& to, const Tile& from) {
  const ISlice& source = iop->sources[0];
  const Box& box = from.box;
  const Tile row = AsRow(to);
  const bool open =
      !e.plan().graph()->sizes.empty() && source->col_end && !source->col_begin && !box.AllCols(from.cols);
  const bool plain = from.dtype == "fp32" && from.memory == kNram && from.Dense() && from.rows > 1 && from.cols > 1;
  const bool same = row.rows == 1 && row.cols == from.rows && row.Dense() && row.dtype == "fp32" &&
                    row.memory == kNram && to.box.row_end.text == box.row_end.text;
  const bool first = box.row_begin.Constant() && box.row_begin.range.low == 0 && to.box.row_begin.Constant() &&
                     to.box.row_begin.range.low == 0;
  const int64_t bytes = from.rows * from.cols * 4;
  if (!open || !plain || !same || !first || bytes > std::min(kMostWork, e.FreeBytes() / 2)) return false;
  if (kTurning * from.cols / kLanes >= kStart + kTurning) return false;
  if (box.row_end.range.high > from.rows || box.col_end.range.high > from.cols) return false;

  const std::string op(iop->name), rows = box.row_end.text, cols = box.col_end.text, left = e.Fresh("left");
  const Tile turned = e.Work("fp32", from.cols, from.rows);
  auto call = [&](const std::string& name, const std::vector<std::string>& args) {
    return Table().Call(e.where(), name, "count", {"float"}, args, e.platform()) + ";";
  };
  const std::string pair = "__bang_" + PairOf(op), whole = box.row_end.Text(Precedence::kProduct);
  std::vector<std::string> lines = {
      call("__bang_transpose", {e.At(turned), e.At(from), rows, std::to_string(from.cols)})};
  const std::string half = "(" + left + " + 1) / 2 * " + whole;
  lines.push_back("for (int32_t " + left + " = " + cols + "; " + left + " > 2; " + left + " = (" + left + " + 1) / 2)");
  lines.push_back("  " + call(pair, {e.At(turned), e.At(turned), e.At(turned, half), left + " / 2 * " + whole}));
  const std::string last = call(pair, {e.At(row), e.At(turned), e.At(turned, whole), rows});
  if (box.col_end.range.low < 2) {
    const std::string length = box.col_end.Text(Precedence::kProduct);
    lines.push_back("if (" + length + " < 2)");
    lines.push_back("  " +
                    call("__bang_write_value", {e.At(turned, length + " * " + whole), "(2 - " + length + ") * " + whole,
                                                e.Literal("fp32", ffi::Any(IdentityOf(op)))}));
  }
  lines.push_back(last);
  if (box.row_end.range.low < 1) lines = tiles::Under("if (" + whole + " > 0)", lines);
  e.Do("COMPUTE", lines, {Reads(from), Reads(turned), Writes(turned), Writes(to)});
  return true;
}

//! \brief Rows of open length with the identity behind their ends: then all of the tile is reduced.
//! \return Whether that may be: nobody minds what lies there, nor in rows that are not.
bool Completed(Emitter& e, const IOp& iop, Tile* to, Tile* from) {
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  const bool open =
      !e.plan().graph()->sizes.empty() && source->col_end && !source->col_begin && !from->box.AllCols(from->cols);
  if (!open || from->dtype != "fp32" || from->memory != kNram || !from->Dense()) return false;
  if (e.SparesOutside(source) || e.SparesOutside(target)) return false;
  Tile rest = *from;
  rest.box = {from->box.row_begin, from->box.row_end, from->box.col_end, Bound::Of(from->cols)};
  FillTile(e, rest, ffi::Any(IdentityOf(std::string(iop->name))));
  from->box = Box::Of(from->rows, from->cols);
  to->box = Box::Of(to->rows, to->cols);
  return true;
}

//! \brief Rows of which the last ones are not there as if they were: whole tiles take fewer functions.
//!
//! What lies in such rows comes to results of the same rows, and to no other.
void TakeAllRows(Emitter& e, const IOp& iop, Tile* to, Tile* from) {
  const Box& box = from->box;
  const bool ends = box.row_begin.Constant() && box.row_begin.range.low == 0 && !box.row_end.Constant();
  if (!ends || !box.AllCols(from->cols) || from->dtype != "fp32" || from->memory != kNram || !from->Dense()) return;
  if (e.SparesOutside(iop->targets[0])) return;
  from->box = Box::Of(from->rows, from->cols);
  to->box = Box::Of(to->rows, to->cols);
}

}  // namespace

void EmitReduce(Emitter& e, const IOp& iop) {
  if (IsGroupForm(iop)) return EmitGroupReduce(e, iop);
  Tile to = e.TileOf(iop->targets[0]), from = e.TileOf(iop->sources[0]);
  const std::string axis = TextAttr(iop->attrs, "axis");
  if (axis == "row" && ReduceTurned(e, iop, to, from)) return;
  if (axis == "row" && !Completed(e, iop, &to, &from)) TakeAllRows(e, iop, &to, &from);
  ReduceTile(e, to, from, std::string(iop->name), axis);
}

}  // namespace uir::codegen::bang
