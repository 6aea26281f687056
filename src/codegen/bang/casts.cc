// SPDX-License-Identifier: Apache-2.0
// Conversions: which steps lead from one dtype to another.
#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/elementwise.h"
#include "codegen/bang/functions_int.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/scalar_loop.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

std::string ModeOf(const std::string& round, const std::string& otherwise) {
  return round.empty() ? otherwise : UpperCase(round);
}

/*! \brief Element by element: between integers, and of floats to and from 64 bits. */
void CastWhole(Emitter& e, const Tile& to, const Tile& from) {
  std::string type = TypeOf(to.dtype).stored;
  ScalarLoop(e, {to, from}, to.box, [&](const std::vector<std::string>& at) {
    std::string value = to.dtype == "bool" ? at[1] + " != 0" : "(" + type + ")" + at[1];
    return std::vector<std::string>{at[0] + " = " + value + ";"};
  });
}

}  // namespace

Value FromFloat(Program& p, Value x, const std::string& to, const std::string& round) {
  if (to == "bool") return p.Stored(p.Compare("NE", p.Float(x), 0.0), to);
  Value wide = p.Float(x);
  if (to == "fp32") return wide;
  if (IsFloat(to)) return p.Cast(wide, to, ModeOf(round, "RINT"));
  std::string mode = ModeOf(round, "TRUNC");
  if (to == "int32") return p.Cast(wide, to, mode);
  // bytes by whole floats, which hold them exactly
  if (to == "uint8") return p.Stored(p.FloatOfWhole(p.Cast(wide, "int32", mode)), to);
  return p.Cast(wide, to, mode);
}

void EmitCast(Emitter& e, const IOp& iop) {
  const std::string from(iop->name), to(iop->dtype);
  for (const std::string& dtype : {from, to}) TypeOf(dtype, e.where());
  const std::string round = RoundOf(iop);
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  if (from == to) {
    Tile tile = e.TileOf(target);
    Copy(e, tile, e.TileOf(source), tile.box);
    return;
  }
  auto vector = [](const std::string& dtype) { return IsFloat(dtype) || IsByte(dtype) || IsWord(dtype); };
  Program p(e.platform(), false, InPairs(target));
  if ((IsFloat(from) && vector(to)) || (IsFloat(to) && vector(from))) {
    Value x = p.Input(0, from);
    Value made = IsFloat(from) ? FromFloat(p, x, to, round) : p.Float(x);
    if (!IsFloat(from) && to != "fp32") made = p.Cast(made, to, ModeOf(round, "RINT"));
    RunProgram(e, p, made, target, {source});
    return;
  }
  Tile t = e.TileOf(target), s = e.TileOf(source);
  if (IsFloat(from) && from != "fp32") {
    Tile wide = e.Work("fp32", s.rows, s.cols);
    wide.box = t.box;
    ConvertTile(e, wide, s, t.box, true);
    s = wide;
  }
  if (IsFloat(from) && !round.empty() && round != "trunc") {
    Tile whole = e.Work("fp32", s.rows, s.cols);
    RunOnTiles(e, p, p.Whole(p.Input(0, "fp32"), ModeOf(round, "TRUNC")), {whole, s}, t.box, true);
    s = whole;
  }
  if (IsFloat(to) && to != "fp32") {
    Tile wide = e.Work("fp32", t.rows, t.cols);
    wide.box = t.box;
    CastWhole(e, wide, s);
    RunOnTiles(e, p, p.Cast(p.Input(0, "fp32"), to, ModeOf(round, "RINT")), {t, wide}, t.box, true);
    return;
  }
  CastWhole(e, t, s);
}

}  // namespace uir::codegen::bang
