// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/api.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

void FillTile(Emitter& e, const Tile& tile, const ffi::Any& value, const std::string& condition) {
  if (tile.dtype == "bf16") {
    // no function writes bf16, and all that counts is the bits
    Tile bits = e.As(tile, "int16");
    bits.box = tile.box;
    FillTile(e, bits, ffi::Any(BfloatBits(value)), condition);
    return;
  }
  Bound rows = AtLeastZero(e, tile.box.row_end - tile.box.row_begin, "row_count");
  Bound cols = AtLeastZero(e, tile.box.col_end - tile.box.col_begin, "col_count");
  if (rows.range.high == 0 || cols.range.high == 0) return;
  std::vector<std::string> guards, lines;
  if (!condition.empty())
    guards.push_back(condition.find("||") == std::string::npos ? condition : "(" + condition + ")");
  for (const Bound* count : {&rows, &cols}) {
    if (count->range.low <= 0) guards.push_back(count->Text(Precedence::kProduct) + " > 0");
  }
  const ScalarType& type = TypeOf(tile.dtype, e.where());
  std::string literal = e.Literal(tile.dtype, value), indent = guards.empty() ? "" : "  ";
  if (!guards.empty()) lines.push_back("if (" + Join(guards, " && ") + ") {");
  Bound first = tile.box.row_begin * tile.row_stride + tile.box.col_begin * tile.col_stride;
  // types that the function does not write, and elements that lie apart, are the scalar unit's
  bool vector = tile.RowsDense() && HasTypes(Table().Find("__bang_write_value", "count"), {type.stored});
  bool dense = tile.rows == 1 || (cols.Constant() && tile.row_stride == cols.range.low);
  if (vector && dense) {
    Bound count = tile.rows == 1 ? cols : rows * cols.range.low;
    lines.push_back(indent +
                    Table().Call(e.where(), "__bang_write_value", "count", {type.stored},
                                 {e.At(tile, first), count.text, literal}, e.platform()) +
                    ";");
  } else {
    std::string row = e.Fresh("row"), stride = row + " * " + std::to_string(tile.row_stride);
    lines.push_back(indent + tiles::ForText(row, "0", rows.text));
    if (vector) {
      lines.push_back(indent + "  " +
                      Table().Call(e.where(), "__bang_write_value", "count", {type.stored},
                                   {e.At(tile, first, stride), cols.text, literal}, e.platform()) +
                      ";");
    } else {
      std::string col = e.Fresh("col");
      lines.push_back(indent + "  " + tiles::ForText(col, "0", cols.text));
      lines.push_back(indent + "    (" + e.At(tile, first) + ")[" + stride + " + " + col + " * " +
                      std::to_string(tile.col_stride) + "] = " + literal + ";");
    }
  }
  if (!guards.empty()) lines.push_back("}");
  e.Do(vector ? "COMPUTE" : "S", lines, {tile.Around(tile.box).Region(true)});
}

void EmitFill(Emitter& e, const IOp& iop) {
  const ffi::Any value = iop->attrs.at("value");
  Tile to = e.TileOf(iop->targets[0]);
  if (to.memory == kNram) {
    FillTile(e, to, value);
    return;
  }
  // made in NRAM first
  Tile work = e.Work(to.dtype, to.rows, to.cols);
  FillTile(e, work, value);
  Copy(e, to, work, to.box);
}

}  // namespace uir::codegen::bang
