// SPDX-License-Identifier: Apache-2.0
// Numbers that count up along rows and columns.
#include "codegen/ascend/api.h"
#include "codegen/ascend/functions.h"
#include "codegen/ascend/index_row.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/reduce.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/vector.h"
#include "codegen/attributes.h"

namespace uir::codegen::ascend {
namespace {

std::string BaseText(const Emitter& e, const IOp& iop) {
  const Affine base = BaseOf(iop);
  if (base->terms.empty()) return base->constant == 0 ? "0" : IntLiteral(base->constant, "int32_t");
  return "static_cast<int32_t>(" + e.Text(base) + ")";
}

}  // namespace

// counted in int32, which wraps as the narrower integers do, and converted once
void EmitIota(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]);
  int64_t row_step = AttrOr<int64_t>(iop->attrs, "row_step", 0), col_step = AttrOr<int64_t>(iop->attrs, "col_step", 1);
  if (e.SparesOutside(iop->targets[0])) {
    e.Refuse("Elements outside of the valid box of an iota must keep their values.");
  }
  if (t.rows > 1 && t.cols == 1 && t.row_stride == 1) {
    t = AsRow(t);
    std::swap(row_step, col_step);
  }
  if (!RowsAligned(t) || !t.RowsDense()) {
    e.Refuse("An iota needs rows that start at blocks of the unified buffer.", "the pass align_rows");
  }
  std::string base = BaseText(e, iop), count = std::to_string(t.cols);
  bool direct = t.dtype == "int32", one = t.rows == 1;
  Tile index = direct && one ? t : e.Work("int32", 1, t.cols);
  IndexRow(e, index, t.cols, one ? base : "0", col_step);
  Bound cols = Bound::Of(t.cols);
  if (one) {
    if (!direct) Convert(e, t, index, Bound::Of(1), cols);
    return;
  }
  Tile made = direct ? t : e.Work("int32", t.rows, t.cols);
  std::string row = e.Fresh("r"), value = TimesText(row, row_step);
  if (base != "0") value = base + " + " + value;
  std::string call =
      e.Call("Adds", "count", {"int32_t"}, {e.At(made, TimesText(row, made.row_stride)), e.At(index), value, count});
  e.Do("V", Looped(row, "0", std::to_string(t.rows), {call + ";"}), {Writes(made), Reads(index)});
  if (!direct) Convert(e, t, made, Bound::Of(t.rows), cols);
}

}  // namespace uir::codegen::ascend
