// SPDX-License-Identifier: Apache-2.0
// Counting: whole numbers by scalar code, converted once.
#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/elementwise.h"
#include "codegen/bang/functions_int.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/scalar_loop.h"

namespace uir::codegen::bang {

// of the first row; each further one is the one before and a number where floats hold it exactly
void EmitIota(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]);
  bool narrow = t.dtype == "fp16" || t.dtype == "bf16";
  Tile made = narrow ? e.Work("fp32", t.rows, t.cols) : t;
  made.box = t.box;
  std::string type = ElementType(made.dtype), row = e.Fresh("i"), col = e.Fresh("j");
  std::string value = "(int64_t)(" + e.Text(BaseOf(iop)) + ")";
  auto add = [&value](const std::string& number, int64_t step) {
    if (step != 0) value += " + " + number + " * " + ElementIntLiteral(step, "int64_t");
  };
  add(row, AttrOr<int64_t>(iop->attrs, "row_step", 0));
  add(col, AttrOr<int64_t>(iop->attrs, "col_step", 1));
  std::vector<std::string> lines = {e.Element(made, row, col) + " = (" + type + ")(" + value + ");"};
  e.Note("scalar code, some tens of cycles for an element");
  e.Do("S", OverBox(row, col, made.box, lines), {Writes(made)});
  if (narrow) ConvertTile(e, t, made, t.box, true);
}

}  // namespace uir::codegen::bang
