// SPDX-License-Identifier: Apache-2.0
// gather and scatter: rows or elements named by an index that lies in the unified buffer.
//
// The scalar unit reads the index; whole rows are then copied one by one.  Elements that no copy reaches (columns that
// lie apart, single elements) go through the scalar unit, one after the other.
#include <algorithm>

#include "codegen/ascend/api.h"
#include "codegen/ascend/elementwise.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/scalar_unit.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/attributes.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief How far column `col` of row `row` is from the first element, with what is 0 left out. */
std::string OffsetOf(const Emitter& e, const Tile& tile, const std::string& row, const Bound& col) {
  std::string text = e.RowText(tile, row);
  return col.text == "0" ? text : text + " + " + col.Text(Precedence::kSum);
}

/*! \brief The tile as if it began at its tensor's start. */
Tile Zero(Tile tile) {
  tile.offset = Affine::Constant(0);
  return tile;
}

/*! \brief What a gather or a scatter works on. */
struct Indexed {
  /*! \brief The side with rows by number: the source of a gather, the target of a scatter. */
  Tile table;
  /*! \brief The other side, (R, C). */
  Tile tile;
  /*! \brief (R, 1), or (R, C) where every element has its own. */
  Tile index;
  bool by_row;
};

/*! \brief What guards rows that may have no columns, or nothing. */
std::string SomeColumns(const Bound& cols) {
  return cols.range.low > 0 ? "" : "if (" + cols.Text(Precedence::kSum) + " > 0)";
}

/*! \brief An array of the scalar unit with the index of every row; of rows without columns there may be none. */
std::string RowIndices(Emitter& e, const Indexed& job, const Box& box, const Bound& cols) {
  std::string name = e.Fresh("index"), row = e.Fresh("r");
  e.Plain("int64_t " + name + "[" + std::to_string(job.tile.rows) + "];");
  std::string value = Member(e, job.index, "GetValue", {OffsetText(e, job.index, row, "0")});
  std::vector<std::string> lines = OverRows(row, box, {name + "[" + row + "] = " + value + ";"});
  e.Do("S", tiles::Under(SomeColumns(cols), lines), {Reads(job.index)});
  return name;
}

std::string InRange(const std::string& number, const Box& box) {
  return number + " >= " + box.row_begin.text + " && " + number + " < " + box.row_end.text;
}

/*! \brief Whether the rows of the table can be copied whole, from or to the start of the tile's rows. */
bool RowsCopied(const Indexed& job, int64_t first) {
  bool table = job.table.memory != "ub" && job.table.RowsDense();
  return job.by_row && table && RowsAligned(job.tile) && job.tile.RowsDense() &&
         first * job.tile.bytes % kBlockBytes == 0;
}

/*! \brief A copy of the columns [begin, end) of one row; begin is a block of the tile. */
std::string RowCopy(Emitter& e, const Indexed& job, const std::string& row, const std::string& number,
                    const Bound& begin, const Bound& end, bool load) {
  std::string type = ElementType(job.tile.dtype);
  Bound cols = end - begin;
  std::string bytes = (cols * job.tile.bytes).Text(Precedence::kSum);
  std::string local = e.At(job.tile, OffsetOf(e, job.tile, row, begin));
  std::string global = e.At(job.table, OffsetOf(e, job.table, number, begin));
  std::string params = e.Call("DataCopyExtParams", "struct", {}, {"1", bytes, "0", "0", "0"});
  std::vector<std::string> args =
      load ? std::vector<std::string>{local, global, params} : std::vector<std::string>{global, local, params};
  if (load) {
    args.push_back(e.Call("DataCopyPadExtParams", "struct", {type}, {"false", "0", "0", IntLiteral(0, type)}));
  }
  return e.Call("DataCopyPad", load ? "load" : "store", {type}, args) + ";";
}

void GatherByRows(Emitter& e, const Indexed& job) {
  const Box& box = job.tile.box;
  Bound cols = box.col_end - box.col_begin;
  if (cols.range.high <= 0) return;
  std::string name = RowIndices(e, job, box, cols), row = e.Fresh("r"), number = name + "[" + row + "]";
  std::vector<std::string> rows =
      OverRows(row, box,
               tiles::Under("if (" + InRange(number, job.table.box) + ")",
                            {RowCopy(e, job, row, number, box.col_begin, box.col_end, true)}));
  e.Do("MTE2", tiles::Under(SomeColumns(cols), rows), {Reads(job.table), Writes(job.tile)});
}

void GatherByElements(Emitter& e, const Indexed& job, const ffi::Any& pad) {
  const Box& box = job.tile.box;
  std::string row = e.Fresh("r"), col = e.Fresh("c"), number = e.Fresh("n");
  std::string index = Member(e, job.index, "GetValue", {OffsetText(e, job.index, row, job.by_row ? "0" : col)});
  std::string value = Member(e, job.table, "GetValue", {OffsetText(e, job.table, number, job.by_row ? col : "0")});
  std::string chosen = InRange(number, job.table.box) + " ? " + value + " : " + e.Literal(job.tile.dtype, pad);
  e.Do("S",
       OverBox(row, col, box,
               {"const int64_t " + number + " = " + index + ";",
                Member(e, job.tile, "SetValue", {OffsetText(e, job.tile, row, col), chosen}) + ";"}),
       {Reads(job.index), Reads(job.table), Writes(job.tile)});
}

/*! \brief Waits where an earlier copy wrote the same row: of equal rows the last holds. */
std::vector<std::string> WaitForEqual(Emitter& e, const std::string& name, const std::string& row, const Bound& begin) {
  std::string other = e.Fresh("q"), clash = e.Fresh("again");
  return {"bool " + clash + " = false;",
          ForText(other, begin.text, row) + " " + clash + " = " + clash + " || " + name + "[" + other + "] == " + name +
              "[" + row + "];",
          "if (" + clash + ") " + e.Call("PipeBarrier", "plain", {}, {"MTE3"}) + ";"};
}

void ScatterByRows(Emitter& e, const Indexed& job, const Box& box, const Bound& begin, const Bound& end) {
  Bound cols = end - begin;
  std::string name = RowIndices(e, job, box, cols), row = e.Fresh("r"), number = name + "[" + row + "]";
  std::vector<std::string> lines = {"if (!(" + InRange(number, job.table.box) + ")) continue;"};
  for (const std::string& line : WaitForEqual(e, name, row, box.row_begin)) lines.push_back(line);
  lines.push_back(RowCopy(e, job, row, number, begin, end, false));
  e.Do("MTE3", tiles::Under(SomeColumns(cols), OverRows(row, box, lines)), {Reads(job.tile), job.table.Region(true)});
}

/*! \brief Element by element to global memory: each in a block of its own, since copies start at blocks. */
void ScatterByElements(Emitter& e, const Indexed& job, const Box& box) {
  int64_t per = kBlockBytes / job.tile.bytes, cols = job.tile.cols;
  std::string type = ElementType(job.tile.dtype);
  OwnLoop rows(e, "row", job.tile.rows);
  Tile blocks = e.Work(job.tile.dtype, 1, cols * per);
  Tile line = job.tile.Part(0, 0, 1, cols), index = job.index.Part(0, 0, 1, job.index.cols);
  line.offset = line.offset + rows.var().Scale(line.row_stride);
  index.offset = index.offset + rows.var().Scale(index.row_stride);
  std::string col = e.Fresh("c"), number = e.Fresh("n"), name = e.Fresh("index"), alive = e.Fresh("alive");
  e.Plain("int64_t " + name + "[" + std::to_string(cols) + "];");
  e.Plain("const bool " + alive + " = " + rows.Text() + " >= " + box.row_begin.text + " && " + rows.Text() + " < " +
          box.row_end.text + ";");
  std::string own = Member(e, index, "GetValue", {OffsetText(e, index, "0", job.by_row ? "0" : col)});
  e.Do("S",
       OverCols(col, box,
                {"if (!" + alive + ") continue;", name + "[" + col + "] = " + own + ";",
                 Member(e, blocks, "SetValue",
                        {TimesText(col, per), Member(e, line, "GetValue", {OffsetText(e, line, "0", col)})}) +
                     ";"}),
       {Reads(index), Reads(line), Writes(blocks)});
  std::string to = e.At(job.table, OffsetText(e, Zero(job.table), name + "[" + col + "]", job.by_row ? col : "0"));
  std::string params = e.Call("DataCopyExtParams", "struct", {}, {"1", std::to_string(job.tile.bytes), "0", "0", "0"});
  std::vector<std::string> lines = {"if (!" + alive + ") continue;"};
  std::string inside = InRange(name + "[" + col + "]", job.table.box);
  if (job.by_row) {
    inside += " && " + col + " >= " + job.table.box.col_begin.text + " && " + col + " < " + job.table.box.col_end.text;
  }
  lines.push_back("if (!(" + inside + ")) continue;");
  if (!job.by_row) {
    for (const std::string& text : WaitForEqual(e, name, col, box.col_begin)) lines.push_back(text);
  }
  lines.push_back(e.Call("DataCopyPad", "store", {type}, {to, e.At(blocks, TimesText(col, per)), params}) + ";");
  e.Do("MTE3", OverCols(col, box, lines), {Reads(blocks), job.table.Region(true)});
  rows.Close();
}

/*! \brief Within the unified buffer the scalar unit does it. */
void ScatterLocally(Emitter& e, const Indexed& job, const Box& box) {
  std::string row = e.Fresh("r"), col = e.Fresh("c"), number = e.Fresh("n");
  std::string index = Member(e, job.index, "GetValue", {OffsetText(e, job.index, row, job.by_row ? "0" : col)});
  std::string inside = InRange(number, job.table.box);
  if (job.by_row) {
    inside += " && " + col + " >= " + job.table.box.col_begin.text + " && " + col + " < " + job.table.box.col_end.text;
  }
  e.Do("S",
       OverBox(row, col, box,
               {"const int64_t " + number + " = " + index + ";", "if (!(" + inside + ")) continue;",
                Member(e, job.table, "SetValue",
                       {OffsetText(e, job.table, number, job.by_row ? col : "0"),
                        Member(e, job.tile, "GetValue", {OffsetText(e, job.tile, row, col)})}) +
                    ";"}),
       {Reads(job.index), Reads(job.tile), Writes(job.table)});
}

Indexed JobOf(Emitter& e, const ISlice& table, const ISlice& tile, const ISlice& index) {
  Indexed job = {e.TileOf(table), e.TileOf(tile), e.TileOf(index), false};
  job.by_row = index->rows == tile->rows && index->cols == 1 && table->cols == tile->cols;
  return job;
}

}  // namespace

void EmitGather(Emitter& e, const IOp& iop) {
  Indexed job = JobOf(e, iop->sources[0], iop->targets[0], iop->sources[1]);
  const ffi::Any pad = PadOf(iop).value_or(ffi::Any(int64_t{0}));
  const Bound& begin = job.tile.box.col_begin;
  if (begin.Constant() && RowsCopied(job, begin.range.low)) {
    // what the index does not name stays pad
    FillSlice(e, iop->targets[0], pad);
    GatherByRows(e, job);
  } else {
    GatherByElements(e, job, pad);
  }
}

void EmitScatter(Emitter& e, const IOp& iop) {
  Indexed job = JobOf(e, iop->targets[0], iop->sources[0], iop->sources[1]);
  const Box box = job.tile.box;
  if (job.table.memory == "ub") {
    ScatterLocally(e, job, box);
    return;
  }
  // rows are copied from the first column that both sides have
  const Box& held = job.table.box;
  const bool begins = box.col_begin.Constant() && held.col_begin.Constant();
  const bool ends = box.col_end.Constant() && held.col_end.Constant();
  const bool same = begins && (ends || box.col_end.text == held.col_end.text);
  int64_t first = same ? std::max(box.col_begin.range.low, held.col_begin.range.low) : 0;
  Bound last = ends ? Bound::Of(std::min(box.col_end.range.low, held.col_end.range.low)) : box.col_end;
  if (same && first >= last.most()) return;
  if (same && RowsCopied(job, first)) {
    ScatterByRows(e, job, box, Bound::Of(first), last);
  } else {
    ScatterByElements(e, job, box);
  }
}

}  // namespace uir::codegen::ascend
