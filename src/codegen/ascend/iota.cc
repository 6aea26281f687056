// SPDX-License-Identifier: Apache-2.0
/*!
 * \file iota.cc
 * \brief Numbers that count up along rows and columns.
 */
#include "api.h"
#include "functions.h"
#include "index_row.h"
#include "ops.h"
#include "reduce.h"
#include "spans.h"
#include "vector.h"

namespace uir {
namespace codegen {
namespace ascend {
namespace {

int64_t StepOf(const IOp& iop, const char* name, int64_t otherwise) {
  auto at = iop->attrs.find(name);
  return at == iop->attrs.end() ? otherwise : (*at).second.cast<int64_t>();
}

std::string BaseText(const Emitter& e, const IOp& iop) {
  auto at = iop->attrs.find("base");
  if (at == iop->attrs.end()) return "0";
  if (auto whole = (*at).second.as<int64_t>()) return IntLiteral(*whole, "int32_t");
  return "static_cast<int32_t>(" + e.Text((*at).second.cast<Affine>()) + ")";
}

}  // namespace

// counted in int32, which wraps as the narrower integers do, and converted once
void EmitIota(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]);
  int64_t row_step = StepOf(iop, "row_step", 0), col_step = StepOf(iop, "col_step", 1);
  if (e.SparesOutside(iop->targets[0])) {
    e.Refuse("Elements outside of the valid box of an iota must keep their values.");
  }
  if (t.rows > 1 && t.cols == 1 && t.row_stride == 1) {
    t = AsRow(t);
    std::swap(row_step, col_step);
  }
  if (!RowsAligned(t) || !t.RowsDense()) {
    e.Refuse("An iota needs rows that start at blocks of the unified buffer.", "the pass pitch");
  }
  std::string base = BaseText(e, iop), count = std::to_string(t.cols);
  bool direct = t.dtype == "int32", one = t.rows == 1;
  Tile index = direct && one ? t : e.Work("int32", 1, t.cols);
  IndexRow(e, index, t.cols, one ? base : "0", col_step);
  Extent cols = Extent::Of(t.cols);
  if (one) {
    if (!direct) Convert(e, t, index, Extent::Of(1), cols);
    return;
  }
  Tile made = direct ? t : e.Work("int32", t.rows, t.cols);
  std::string row = e.Fresh("r"), value = TimesText(row, row_step);
  if (base != "0") value = base + " + " + value;
  e.Do("V",
       {"for (int32_t " + row + " = 0; " + row + " < " + std::to_string(t.rows) + "; ++" + row + ") {",
        "  " +
            e.Call("Adds", "count", {"int32_t"},
                   {e.At(made, TimesText(row, made.row_stride)), e.At(index), value, count}) +
            ";",
        "}"},
       {Writes(made), Reads(index)});
  if (!direct) Convert(e, t, made, Extent::Of(t.rows), cols);
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
