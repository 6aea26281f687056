// SPDX-License-Identifier: Apache-2.0
// gather and scatter: a copy for each row, or each element, whose number scalar code reads.
#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

/*! \brief A row, or an element, of a tile at a number that only the run knows. */
Tile RowAt(const Emitter& e, const Tile& tile, const std::string& number) {
  Tile row = tile;
  // the text of the start; regions are taken from the whole tile
  row.tensor = tile.tensor + " + " + e.RowText(tile, number);
  row.rows = 1;
  row.row_stride = tile.row_pitch ? tile.cols : tile.row_stride;
  row.row_pitch.reset();
  return row;
}

/*! \brief Loops over the box of the index with a copy inside; a copy waits until it is done. */
void Indexed(Emitter& e, const Tile& moved, const Tile& index, const Tile& table, bool to_table, const ffi::Any* pad) {
  std::string row = e.Fresh("i"), col = e.Fresh("j"), at = e.Fresh("at");
  bool each = index.cols > 1;
  Tile part = RowAt(e, moved, row), found = RowAt(e, table, at);
  if (each) {
    part.tensor += " + " + col + " * " + std::to_string(moved.col_stride);
    part.cols = 1;
    found.cols = 1;
  }
  Box box = Box::Of(1, part.cols);
  if (!each) {
    box.col_begin = moved.box.col_begin;
    box.col_end = moved.box.col_end;
  }
  part.box = found.box = box;
  const Tile &to = to_table ? found : part, &from = to_table ? part : found;
  bool on_chip = to.memory == kNram && from.memory == kNram;
  std::string k = e.Fresh("k");
  // one element of either side, in a loop over k unless the index names each
  auto over = [&](const std::string& line) {
    std::vector<std::string> one = {line};
    return each ? one : OverCols(k, box, one);
  };
  std::string own = e.Element(moved, row, each ? col : k), other = e.Element(table, at, each ? "0" : k);
  std::vector<std::string> copy, lines;
  if (on_chip) {
    // elements by scalar code: copies within NRAM have an alignment that rows need not have
    copy = over((to_table ? other : own) + " = " + (to_table ? own : other) + ";");
  } else {
    copy = CopyLines(e, to, from, box, "__memcpy");
  }
  lines.push_back("const int64_t " + at + " = " + e.Element(index, row, each ? col : "0") + ";");
  lines.push_back("if (" + table.box.row_begin.text + " <= " + at + " && " + at + " < " + table.box.row_end.text +
                  ") {");
  for (const std::string& line : copy) lines.push_back("  " + line);
  if (pad != nullptr) {
    lines.emplace_back("} else {");
    bool bits = part.dtype == "bf16";
    Tile shown = moved;
    if (bits) shown.tensor = "(" + Typed(moved.tensor, ElementType("bf16"), "int16_t") + ")";
    std::string value = bits ? std::to_string(BfloatBits(*pad)) : e.Literal(part.dtype, *pad);
    for (const std::string& line : over(e.Element(shown, row, each ? col : k) + " = " + value + ";")) {
      lines.push_back("  " + line);
    }
  }
  lines.emplace_back("}");
  if (each) lines = OverCols(col, moved.box, lines);
  // of rows without columns there may be no index
  const Bound cols = moved.box.col_end - moved.box.col_begin;
  const std::string some = each || cols.range.low > 0 ? "" : "if (" + cols.Text(Precedence::kSum) + " > 0)";
  e.Do("S", tiles::Under(some, OverRows(row, moved.box, lines)),
       {to_table ? Reads(moved) : Writes(moved), Reads(index), to_table ? Writes(table) : Reads(table)});
}

}  // namespace

void EmitGather(Emitter& e, const IOp& iop) {
  const ffi::Any pad = PadOf(iop).value_or(ffi::Any(int64_t{0}));
  Indexed(e, e.TileOf(iop->targets[0]), e.TileOf(iop->sources[1]), e.TileOf(iop->sources[0]), false, &pad);
}

void EmitScatter(Emitter& e, const IOp& iop) {
  Indexed(e, e.TileOf(iop->sources[0]), e.TileOf(iop->sources[1]), e.TileOf(iop->targets[0]), true, nullptr);
}

}  // namespace uir::codegen::bang
