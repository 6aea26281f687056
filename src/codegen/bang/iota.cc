// SPDX-License-Identifier: Apache-2.0
/*!
 * \file iota.cc
 * \brief Counting: whole numbers by scalar code, converted once.
 */
#include "api.h"
#include "elementwise.h"
#include "functions_int.h"
#include "ops.h"
#include "run.h"
#include "scalar_loop.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

int64_t StepOf(const IOp& iop, const char* name, int64_t otherwise) {
  auto at = iop->attrs.find(name);
  return at == iop->attrs.end() ? otherwise : (*at).second.cast<int64_t>();
}

std::string BaseText(const Emitter& e, const IOp& iop) {
  auto at = iop->attrs.find("base");
  if (at == iop->attrs.end()) return "0";
  if (auto whole = (*at).second.as<int64_t>()) return std::to_string(*whole);
  return e.Text((*at).second.cast<Affine>());
}

}  // namespace

// of the first row; each further one is the one before and a number where floats hold it exactly
void EmitIota(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]);
  bool narrow = t.dtype == "fp16" || t.dtype == "bf16";
  Tile made = narrow ? e.Work("fp32", t.rows, t.cols) : t;
  made.box = t.box;
  std::string type = ElementType(made.dtype), row = e.Fresh("i"), col = e.Fresh("j");
  std::string value = "(int64_t)(" + BaseText(e, iop) + ")";
  auto add = [&value](const std::string& number, int64_t step) {
    if (step != 0) value += " + " + number + " * " + ElementIntLiteral(step, "int64_t");
  };
  add(row, StepOf(iop, "row_step", 0));
  add(col, StepOf(iop, "col_step", 1));
  std::vector<std::string> lines = {e.Element(made, row, col) + " = (" + type + ")(" + value + ");"};
  lines = Looped(col, made.box.col_begin.text, made.box.col_end.text, lines);
  e.Note("scalar code, some tens of cycles for an element");
  e.Do("S", Looped(row, made.box.row_begin.text, made.box.row_end.text, lines), {Writes(made)});
  if (narrow) ConvertTile(e, t, made, t.box, true);
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
