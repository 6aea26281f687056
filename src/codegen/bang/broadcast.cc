// SPDX-License-Identifier: Apache-2.0
// Broadcasts: rows are filled by their element, or copied with a stride of 0.
#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/group.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/scalar_loop.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Type of the value that fills elements of a dtype by their bits. */
std::string FillType(const Tile& tile) {
  if (tile.dtype == "bf16") return "int16_t";
  return ElementType(tile.dtype);
}

}  // namespace

void BroadcastTile(Emitter& e, const Tile& to, const Tile& from, const std::string& axis) {
  if (axis == "col") {
    Tile repeated = from;
    repeated.rows = to.rows;
    repeated.row_stride = 0;
    Copy(e, to, repeated, to.box);
    return;
  }
  Tile repeated = from;
  repeated.cols = to.cols;
  repeated.col_stride = 0;
  if (to.bytes == 8 || !to.RowsDense() || to.cols == 1) {
    ScalarLoop(e, {to, repeated}, to.box, [](const std::vector<std::string>& at) {
      return std::vector<std::string>{at[0] + " = " + at[1] + ";"};
    });
    return;
  }
  std::string row = e.Fresh("r"), type = FillType(to), own = ElementType(to.dtype);
  const Bound &begin = to.box.col_begin, &end = to.box.col_end;
  std::string count = end.text;
  if (begin.Constant() && end.Constant()) {
    count = std::to_string(end.range.low - begin.range.low);
  } else if (begin.text != "0") {
    count = end.text + " - (" + begin.text + ")";
  }
  std::string value = own == type ? e.Element(from, row, "0") : "*(" + type + " *)&" + e.Element(from, row, "0");
  std::string more = to.rows == 1
                         ? begin.text
                         : row + " * " + std::to_string(to.row_stride) + (begin.text == "0" ? "" : " + " + begin.text);
  std::vector<std::string> lines = {
      Table().Call(e.where(), "__bang_write_value", "count", {type}, {e.At(to, more), count, value}, e.platform()) +
      ";"};
  bool some = begin.Constant() ? end.range.low > begin.range.low : end.range.low > begin.range.high;
  if (!some) lines[0] = "if (" + count + " > 0) " + lines[0];
  // scalar code reads the element in the order of vector functions
  e.Do("COMPUTE", OverRows(row, to.box, lines), {Writes(to), Reads(from)});
}

void EmitBroadcast(Emitter& e, const IOp& iop) {
  if (IsGroupForm(iop)) return EmitGroupBroadcast(e, iop);
  BroadcastTile(e, e.TileOf(iop->targets[0]), e.TileOf(iop->sources[0]), TextAttr(iop->attrs, "axis"));
}

}  // namespace uir::codegen::bang
