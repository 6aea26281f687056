// SPDX-License-Identifier: Apache-2.0
// gather and scatter: rows or elements of a table in memory by indices in registers.
//
// An index outside of the table's valid rows touches no memory.  Of equal places a scatter's last element (in the
// order of rows, then columns) holds: among the lanes of one store the last one is found by a match, and stores of
// different registers are kept apart by barriers of the warp.
#include <tvm/ffi/any.h>

#include <algorithm>

#include "codegen/attributes.h"
#include "codegen/cuda/loops.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"
#include "codegen/words.h"

namespace uir::codegen::cuda {

namespace {

std::string And(const std::vector<std::string>& conditions) {
  std::vector<std::string> some;
  for (const std::string& one : conditions) {
    if (!one.empty()) some.push_back(one);
  }
  return Join(some, " && ");
}

/*! \brief `if (c) ` or nothing. */
std::string If(const std::string& condition) { return condition.empty() ? "" : "if (" + condition + ") "; }

/*! \brief What a box says of rows, and of columns. */
Box RowsOf(const Box& box) { return {box.row_begin, box.row_end, {}, {}}; }
Box ColsOf(const Box& box) { return {{}, {}, box.col_begin, box.col_end}; }

/*! \brief Elements that one access of a row of the table moves in this layout; bounded by what else is masked. */
int WidthOfRows(const StepPlanner& p, const ISlice& table, const ISlice& masked, const Layout& layout) {
  Access access = p.plan.MoveOf(table, p.scope);
  access.col_bounds = std::min(access.col_bounds, AccessOf(masked, p.scope).col_bounds);
  Width width = WidthOf(access, layout);
  return width.along_rows ? 1 : width.elements;
}

/*! \brief Defines `found` (whether the key names a valid row) and `index` (the row, or 0). */
void PrintIndex(Emitter& e, const std::string& key, const ISlice& table, const Box& box, const std::string& condition) {
  std::string begin = box.row_begin ? *box.row_begin : "0", end = box.row_end ? *box.row_end : Text(table->rows);
  e.out.Line("const int64_t key = " + key + ";");
  e.out.Line("const bool found = " + And({condition, "key >= " + begin, "key < " + end}) + ";");
  const bool far = table->rows > INT32_MAX;
  e.out.Line(far ? "const int64_t index = found ? key : 0;" : "const int index = found ? static_cast<int>(key) : 0;");
}

/*! \brief The columns of a row of registers, in steps of `width`. */
struct Columns {
  Place at;
  /*! \brief Text of the register's place within its block, `n` counting the elements of one access. */
  std::string within;
};

Columns OpenColumns(Loops* loops, const Fragment& f, int width) {
  Columns out;
  out.at = loops->Side(f, false, true, width);
  out.within = width == 1             ? out.at.within
               : out.at.within == "0" ? "n"
                                      : "(" + out.at.within + " * " + Text(width) + " + n)";
  return out;
}

bool ByRow(const ISlice& index, int64_t rows, int64_t cols, int64_t table_cols) {
  return index->rows == rows && index->cols == 1 && table_cols == cols;
}

std::string PadText(Emitter& e, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  const ffi::Any pad = codegen::PadOf(iop).value_or(ffi::Any(int64_t{0}));
  if (auto whole = pad.as<int64_t>()) return StoredLiteral(type, *whole);
  return StoredLiteral(type, pad.cast<double>());
}

/*! \brief A gather: of rows of the table, or of single elements. */
class GatherStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  Operand keys, target;
  bool by_row = true;
  /*! \brief Of rows: elements of one access. */
  int width = 1;
  MeetingPlace read = kNowhere;

 private:
  void Rows(Emitter& e, const Regs& y, const Regs& keys, const std::string& pad) const;
  void Elements(Emitter& e, const Regs& y, const Regs& keys, const std::string& pad) const;
};

void GatherStep::Rows(Emitter& e, const Regs& y, const Regs& keys, const std::string& pad) const {
  const ISlice &table = iop->sources[0], &target = iop->targets[0];
  Box valid = e.BoxOf(table), box = e.BoxOf(target);
  const Fragment& f = y.fragment;
  Coordinates needed = e.InsideNeeds(f, box);
  std::string type = TypeOf(y.dtype).stored;
  Box rows_only = RowsOf(box), cols_only = ColsOf(box);
  Fragment one_col(f.layout, f.rows, 1), one_row(f.layout, 1, f.cols);

  Loops rows(&e);
  Place at = rows.Side(f, true, needed.row || y.spare);
  rows.OpenBlock();
  PrintIndex(e, keys.At(at.block, "0", at.within, "0"), table, valid,
             e.Inside(one_col, rows_only, CellOf(at, Place())));
  Loops cols(&e);
  Columns along = OpenColumns(&cols, f, width);
  Cell cell = CellOf(at, along.at);
  std::string condition = And({"found", e.Inside(one_row, cols_only, cell)});
  std::string element = e.Element(table, "index", along.at.coordinate);
  if (width == 1) {
    e.Assign(y, cell, condition + " ? *(" + element + ") : " + pad);
  } else {
    std::string kind = type + ", " + Text(width) + ">";
    std::string each = "for (int n = 0; n < " + Text(width) + "; ++n) ";
    e.needs.Core("load_vec");
    e.out.Line("vec<" + kind + " v;");
    e.out.Line("#pragma unroll");
    e.out.Line(each + "v.v[n] = " + pad + ";");
    e.out.Line(If(condition) + "v = load_vec<" + kind + "(" + element + ");");
    e.out.Line("#pragma unroll");
    e.out.Line(each + y.At(at.block, along.at.block, at.within, along.within) + " = v.v[n];");
  }
  cols.Close();
  rows.Close();
}

void GatherStep::Elements(Emitter& e, const Regs& y, const Regs& keys, const std::string& pad) const {
  const ISlice& table = iop->sources[0];
  Box valid = e.BoxOf(table), box = e.BoxOf(iop->targets[0]);
  Coordinates needed = e.InsideNeeds(y.fragment, box);
  Loops loops(&e);
  Place row = loops.Side(y.fragment, true, needed.row || y.spare);
  Place col = loops.Side(y.fragment, false, needed.col || y.spare);
  loops.OpenBlock();
  Cell cell = CellOf(row, col);
  PrintIndex(e, keys[cell], table, valid, e.Inside(y.fragment, box, cell));
  e.Assign(y, cell, "found ? *(" + e.Element(table, "index", "0") + ") : " + pad);
  loops.Close();
}

void GatherStep::Print(Emitter& e) const {
  Regs index = e.Source(keys);
  Regs y = e.Target(target);
  std::string pad = PadText(e, iop);
  e.Meet(read);
  by_row ? Rows(e, y, index, pad) : Elements(e, y, index, pad);
  e.Commit(target, y);
}

/*! \brief A scatter: of rows of the source, or of single elements. */
class ScatterStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  Operand keys, source;
  bool by_row = true;
  /*! \brief Of rows: elements of one access. */
  int width = 1;
  /*! \brief Whether lanes store at once into what may be one place, and registers one after the other. */
  bool rivals = true, in_turns = false;
  MeetingPlace written = kNowhere;
};

/*! \brief Prints one scatter. */
class ScatterPrinter {
 public:
  ScatterPrinter(Emitter* e, const ScatterStep& step) : e_(*e), step_(step) {}

  void Print() {
    const ISlice &target = step_.iop->targets[0], &source = step_.iop->sources[0];
    Regs keys = e_.Source(step_.keys), x = e_.Source(step_.source);
    valid_ = e_.BoxOf(target);
    box_ = e_.BoxOf(source);
    e_.Meet(step_.written);
    const Fragment& f = x.fragment;
    const Layout& l = f.layout;
    Loops loops(&e_);
    Coordinates needed = e_.InsideNeeds(f, box_);
    Place at = loops.Side(f, true, needed.row);
    if (step_.by_row) {
      loops.OpenBlock();
      if (step_.rivals && step_.in_turns)
        e_.out.Line("__syncwarp();  // what an earlier row stored, a later one replaces");
      Fragment one_col(l, f.rows, 1);
      PrintIndex(e_, keys.At(at.block, "0", at.within, "0"), target, valid_,
                 And({e_.Inside(one_col, RowsOf(box_), CellOf(at, Place())), e_.OneOfCopies(f)}));
      if (step_.rivals) PrintLast(l, Text(l.lanes_c), e_.LaneCol(l));
      Row(x, at);
    } else {
      Place along = loops.Side(f, false, needed.col);
      loops.OpenBlock();
      if (step_.in_turns) e_.out.Line("__syncwarp();  // what an earlier element stored, a later one replaces");
      Cell cell = CellOf(at, along);
      PrintIndex(e_, keys[cell], target, valid_, And({e_.Inside(f, box_, cell), e_.OneOfCopies(f)}));
      PrintLast(l, "1", "0");
      e_.out.Line(If(ColumnValid("0", "last")) + "*(" + e_.Element(target, "index", "0") + ") = " + x[cell] + ";");
    }
    loops.Close();
  }

 private:
  /*! \brief Defines `last`: found, and no later lane stores to the same place. */
  void PrintLast(const Layout& l, const std::string& lanes, const std::string& lane) {
    bool wide = step_.iop->targets[0]->rows * l.lanes_c > INT32_MAX;
    std::string place = wide ? "static_cast<int64_t>(index)" : "index";
    if (lanes != "1") place += " * " + lanes + (lane == "0" ? "" : " + " + lane);
    std::string none = "-1 - lane";
    e_.out.Line("const unsigned rivals = __match_any_sync(0xffffffffu, found ? " + place + " : " + none + ");");
    e_.out.Line("const bool last = found && rivals >> lane == 1u;");
  }

  /*! \brief The condition to store at a column: what is found, within the table's valid columns. */
  std::string ColumnValid(const std::string& column, const std::string& found) const {
    std::vector<std::string> conditions = {found};
    if (valid_.col_begin) conditions.push_back(column + " >= " + *valid_.col_begin);
    if (valid_.col_end) conditions.push_back(column + " < " + *valid_.col_end);
    return And(conditions);
  }

  void Row(const Regs& x, const Place& at) {
    const int width = step_.width;
    const Fragment& f = x.fragment;
    const ISlice& target = step_.iop->targets[0];
    Loops cols(&e_);
    Columns along = OpenColumns(&cols, f, width);
    Fragment one_row(f.layout, 1, f.cols);
    std::string inside = e_.Inside(one_row, ColsOf(box_), CellOf(at, along.at));
    std::string condition = And({ColumnValid(along.at.coordinate, step_.rivals ? "last" : "found"), inside});
    std::string element = e_.Element(target, "index", along.at.coordinate);
    std::string value = x.At(at.block, along.at.block, at.within, along.within);
    if (width == 1) {
      e_.out.Line(If(condition) + "*(" + element + ") = " + value + ";");
    } else {
      std::string kind = std::string(TypeOf(x.dtype).stored) + ", " + Text(width) + ">";
      e_.needs.Core("store_vec");
      e_.out.Line("vec<" + kind + " v;");
      e_.out.Line("#pragma unroll");
      e_.out.Line("for (int n = 0; n < " + Text(width) + "; ++n) v.v[n] = " + value + ";");
      e_.out.Line(If(condition) + "store_vec<" + kind + "(" + element + ", v);");
    }
    cols.Close();
  }

  Emitter& e_;
  const ScatterStep& step_;
  Box valid_, box_;
};

void ScatterStep::Print(Emitter& e) const { ScatterPrinter(&e, *this).Print(); }

/*! \brief A layout in which the registers' order, then the lanes', is that of rows, then columns. */
Layout InOrder(const Plan& plan, const IOp& iop, bool by_row) {
  if (!by_row) return iop->sources[0]->cols > 1 ? Layout{1, kLanes, 1, 1, false} : Layout{kLanes, 1, 1, 1, false};
  Layout layout = plan.WorkLayout(iop);
  layout.vec_r = 1;
  return layout;
}

}  // namespace

StepPtr PlanGather(StepPlanner& p, const IOp& iop) {
  const ISlice &target = iop->targets[0], &table = iop->sources[0], &index = iop->sources[1];
  const Layout layout = p.plan.WorkLayout(iop);
  auto step = std::make_unique<GatherStep>(iop);
  step->keys = p.Source(index, layout);
  step->target = p.Target(target, layout);
  step->read = p.Reads(table);
  step->by_row = ByRow(index, target->rows, target->cols, table->cols);
  if (step->by_row && !step->target.spares_in_place()) {
    step->width = WidthOfRows(p, table, target, step->target.fragment.layout);
  }
  p.Commit(&step->target);
  return step;
}

StepPtr PlanScatter(StepPlanner& p, const IOp& iop) {
  const ISlice &target = iop->targets[0], &source = iop->sources[0], &index = iop->sources[1];
  auto step = std::make_unique<ScatterStep>(iop);
  const bool by_row = step->by_row = ByRow(index, source->rows, source->cols, target->cols);
  const Layout layout = InOrder(p.plan, iop, by_row);
  step->keys = p.Source(index, layout);
  step->source = p.Source(source, layout);
  step->written = p.Writes(target);
  const Fragment& f = step->source.fragment;
  const Layout& l = f.layout;
  if (by_row) step->width = std::min(WidthOfRows(p, target, source, l), WidthOfRows(p, target, target, l));
  step->rivals = !by_row || (f.rows > 1 && l.lanes_r > 1);
  step->in_turns = (by_row ? f.blocks_r() * l.vec_r : f.size()) > 1;
  return step;
}

}  // namespace uir::codegen::cuda
