// SPDX-License-Identifier: Apache-2.0
// unary, binary, compare, select: which steps an element takes in its dtype.
#include "codegen/bang/elementwise.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/functions_int.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/scalar_loop.h"
#include "codegen/bang/tile_ops.h"
#include "codegen/number.h"
#include "codegen/tiles/functions.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Functions that IEEE 754 rounds once: a program may not join two of them to one. */
bool IsArithmetic(const std::string& name) {
  static const std::set<std::string> names = {"adds", "subs", "rsubs", "muls", "divs",
                                              "neg",  "add",  "sub",   "mul",  "div"};
  return names.count(name) > 0;
}

[[noreturn]] void RefuseDtype(const Emitter& e, const std::string& what, const std::string& dtype) {
  e.Refuse("A core of an MLU cannot compute " + what + " of " + dtype + ".", "", "", "run this operator on the host");
}

/*! \brief One function of floats; y.id -1 for unary ones.  id -1 where there is none. */
Value FloatOf(Program& p, const std::string& name, const std::string& dtype, Value x, Value y, double param) {
  bool unary = y.id < 0;
  if (!(unary ? tiles::HasFloatUnary(name) : tiles::HasFloatBinary(name))) return {-1};
  bool direct = dtype == "fp32" || (dtype == "fp16" && tiles::RoundsOnceInHalf(name));
  Value a = direct ? x : p.Float(x), b = direct || unary ? y : p.Float(y);
  double held = RoundFloat(dtype, param);
  Value made = unary ? UnaryOf(p, name, a, held) : BinaryOf(p, name, a, b);
  if (IsArithmetic(name)) p.Given(made);
  if (name == "isnan" || name == "isinf" || name == "isfinite") return p.Stored(made, "bool");
  return direct ? made : p.Stored(made, dtype);
}

/*! \brief A function of bools, which are 0 and 1 as floats; y.id -1 for unary ones.  id -1 where there is none. */
Value TruthOf(Program& p, const std::string& name, Value x, Value y) {
  Value a = p.Float(x);
  if (y.id < 0) return name == "not" ? p.Stored(p.Compare("EQ", a, 0.0), "bool") : Value{-1};
  if (name == "xor") return p.Stored(p.Compare("NE", a, p.Float(y)), "bool");
  if (name != "and" && name != "or") return {-1};
  return p.Stored(BinaryOf(p, name == "and" ? "mul" : "max", a, p.Float(y)), "bool");
}

/*! \brief Whether kernels write 16-bit floats only. */
bool EndsNarrow(const Emitter& e) {
  bool writes = false;
  for (const Use& use : e.plan().uses()) {
    if (!use.write || use.slice->pointer->level != "dram") continue;
    const auto& dtype = use.slice->pointer->dtype;
    if (dtype != "fp16" && dtype != "bf16") return false;
    writes = true;
  }
  return writes;
}

/*! \brief Whether a bound, where there is one, is even whatever its variables are. */
bool IsEven(const ffi::Optional<Affine>& bound) {
  if (!bound) return true;
  const Affine& sum = bound.value();
  return sum->constant % 2 == 0 &&
         std::all_of(sum->terms.begin(), sum->terms.end(), [](const Term& term) { return term->coeff % 2 == 0; });
}

/*! \brief Whether an iOp takes bits of bytes, which vectors of words do. */
bool HasByteBits(const IOp& iop) {
  const bool has_sign = iop->dtype == "int8";
  if (iop->op != "unary" || (iop->dtype != "uint8" && !has_sign) || !InPairs(iop->targets[0])) return false;
  const int64_t param = AsInt(ParamOf(iop));
  // without its sign a byte is a number that both types have
  if (iop->name == "ands") return !has_sign || (0 <= param && param < 128);
  return !has_sign && iop->name == "shrs" && 0 < param && param < 8;
}

Value ByteBitsOf(Program& p, const IOp& iop, Value x) {
  const int64_t param = AsInt(ParamOf(iop));
  return iop->name == "ands" ? p.ByteBits(x, param, 0) : p.ByteBits(x, 0xff, static_cast<int>(param));
}

/*! \brief Whether a slice shows one row for all rows (pass `fold_broadcast`). */
bool IsSpread(const ISlice& slice) { return slice->rows > 1 && slice->row_stride == 0 && slice->cols > 1; }

/*! \brief A sum or product of fp32 with a row for all rows: functions that repeat it, or row by row beside gaps. */
void EmitCycled(Emitter& e, const IOp& iop) {
  const int row_operand = IsSpread(iop->sources[0]) ? 0 : 1;
  Tile to = e.TileOf(iop->targets[0]), whole = e.TileOf(iop->sources[1 - row_operand]);
  Tile row = e.TileOf(iop->sources[row_operand]);
  const std::string name(iop->name);
  if (!to.RowsDense() || !whole.RowsDense() || row.col_stride != 1) {
    Tile repeated = e.Work("fp32", to.rows, to.cols);
    repeated.box = to.box;
    Tile one = row;
    one.rows = 1;
    BroadcastTile(e, repeated, one, "col");
    BinaryTile(e, name, to, whole, repeated);
    return;
  }
  const Box& box = to.box;
  const std::vector<pipes::Region> regions = {Writes(to), Reads(whole), Reads(row)};
  const bool first = box.row_begin.Constant() && box.row_begin.range.low == 0;
  // beside the gaps where nobody minds what becomes of them: a start for each row takes longer
  const bool gaps_free = !e.SparesOutside(iop->targets[0]);
  if (to.Dense() && whole.Dense() && (box.AllCols(to.cols) || gaps_free) && first) {
    const Bound count = box.row_end * to.cols;
    if (count.range.high <= 0) return;
    const std::string call =
        Table().Call(e.where(), "__bang_cycle_" + name, "count", {"float"},
                     {e.At(to), e.At(whole), e.At(row), count.text, std::to_string(to.cols)}, e.platform());
    std::vector<std::string> lines = {call + ";"};
    if (count.range.low <= 0) lines = tiles::Under("if (" + box.row_end.text + " > 0)", lines);
    e.Do("COMPUTE", lines, regions);
    return;
  }
  const Bound count = box.col_end - box.col_begin;
  if (count.range.high <= 0) return;
  const std::string at = e.Fresh("r"), begin = box.col_begin.text;
  auto place = [&](const Tile& tile) {
    return e.At(tile, tiles::PlusText(tiles::TimesText(at, tile.row_stride), begin));
  };
  const std::string call =
      Table().Call(e.where(), "__bang_" + name, "count", {"float"},
                   {place(to), place(whole), e.At(row, begin == "0" ? "" : begin), count.text}, e.platform());
  std::vector<std::string> lines = {call + ";"};
  if (count.range.low <= 0) lines = tiles::Under("if (" + count.text + " > 0)", lines);
  e.Do("COMPUTE", OverRows(at, box, lines), regions);
}

/*! \brief An operand, with what is known of it. */
Value InputOf(const Emitter& e, Program& p, const IOp& iop, int operand) {
  Value x = p.Input(operand, std::string(iop->sources[operand]->pointer->dtype));
  p.Know(x, e.IntervalOf(iop->sources[operand], iop->targets[0]));
  return x;
}

}  // namespace

bool InPairs(const ISlice& target) {
  if (target->cols == 1) return target->row_stride == 1 && target->rows % 2 == 0 && BoxText(target).empty();
  // no pair is cut where what exists of a row begins and ends at one
  return target->cols % 2 == 0 && IsEven(target->col_begin) && IsEven(target->col_end);
}

Program ProgramFor(const Emitter& e, const ISlice& target) {
  return Program(e.platform(), EndsNarrow(e), InPairs(target));
}

bool HasValue(const IOp& iop) {
  const std::string name(iop->name);
  if (HasByteBits(iop)) return true;
  if (!IsFloat(std::string(iop->dtype))) return false;
  if (iop->op == "cast") return (IsFloat(name) || name == "uint8" || name == "int8") && name != iop->dtype;
  if (iop->op == "unary") return tiles::HasFloatUnary(name) && iop->targets[0]->pointer->dtype != "bool";
  return iop->op == "binary" && tiles::HasFloatBinary(name);
}

Value ValueOf(Program& p, const IOp& iop, const std::vector<Value>& sources) {
  const std::string dtype(iop->dtype), name(iop->name);
  if (HasByteBits(iop)) return ByteBitsOf(p, iop, sources[0]);
  if (iop->op == "cast") return FromFloat(p, sources[0], dtype, RoundOf(iop));
  Value second = sources.size() > 1 ? sources[1] : Value{-1};
  return FloatOf(p, name, dtype, sources[0], second, iop->op == "unary" ? AsDouble(ParamOf(iop)) : 0);
}

void EmitUnary(Emitter& e, const IOp& iop) {
  const std::string dtype(iop->dtype), name(iop->name);
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  if (name == "copy") {
    Tile to = e.TileOf(target);
    Copy(e, to, e.TileOf(source), to.box);
    return;
  }
  ffi::Any param = ParamOf(iop);
  if (HasByteBits(iop)) {
    Program p = ProgramFor(e, target);
    RunProgram(e, p, ByteBitsOf(p, iop, p.Input(0, dtype)), target, {source});
    return;
  }
  if (IsFloat(dtype) || dtype == "bool") {
    Program p = ProgramFor(e, target);
    Value made = dtype == "bool" ? TruthOf(p, name, p.Input(0, dtype), {-1})
                                 : FloatOf(p, name, dtype, InputOf(e, p, iop, 0), {-1}, AsDouble(param));
    if (made.id < 0) RefuseDtype(e, name, dtype);
    RunProgram(e, p, made, target, {source});
    return;
  }
  if (!IsWhole(dtype) || IntUnary(dtype, name, "y", "x", AsInt(param)).empty()) RefuseDtype(e, name, dtype);
  std::vector<Tile> tiles = e.TilesOf(target, {source});
  ScalarLoop(e, tiles, tiles[0].box,
             [&](const std::vector<std::string>& at) { return IntUnary(dtype, name, at[0], at[1], AsInt(param)); });
}

void EmitBinary(Emitter& e, const IOp& iop) {
  const std::string dtype(iop->dtype), name(iop->name);
  if (name == "pow" && !IsFloat(dtype)) {
    e.Refuse("A core of an MLU raises integers to constant powers only.", "unary.pows", "",
             "run this operator on the host");
  }
  if (IsSpread(iop->sources[0]) || IsSpread(iop->sources[1])) return EmitCycled(e, iop);
  if (dtype == "bool") {
    Program p = ProgramFor(e, iop->targets[0]);
    Value made = TruthOf(p, name, p.Input(0, dtype), p.Input(1, dtype));
    if (made.id < 0) RefuseDtype(e, name, dtype);
    RunProgram(e, p, made, iop->targets[0], {iop->sources[0], iop->sources[1]});
    return;
  }
  if (IsFloat(dtype)) {
    Program p = ProgramFor(e, iop->targets[0]);
    Value x = InputOf(e, p, iop, 0);
    bool one =
        iop->sources[0]->pointer->name == iop->sources[1]->pointer->name && SamePlace(iop->sources[0], iop->sources[1]);
    Value y = one ? x : InputOf(e, p, iop, 1);
    Value made = FloatOf(p, name, dtype, x, y, 0);
    if (made.id < 0) RefuseDtype(e, name, dtype);
    RunProgram(e, p, made, iop->targets[0], {iop->sources[0], iop->sources[1]});
    return;
  }
  if (!IsWhole(dtype) || IntBinary(dtype, name, "z", "x", "y").empty()) RefuseDtype(e, name, dtype);
  std::vector<Tile> tiles = e.TilesOf(iop->targets[0], {iop->sources[0], iop->sources[1]});
  ScalarLoop(e, tiles, tiles[0].box,
             [&](const std::vector<std::string>& at) { return IntBinary(dtype, name, at[0], at[1], at[2]); });
}

void BinaryTile(Emitter& e, const std::string& name, const Tile& to, const Tile& a, const Tile& b) {
  if (IsFloat(to.dtype)) {
    Program p(e.platform());
    Value made = FloatOf(p, name, to.dtype, p.Input(0, to.dtype), p.Input(1, to.dtype), 0);
    RunOnTiles(e, p, made, {to, a, b}, to.box, true);
    return;
  }
  ScalarLoop(e, {to, a, b}, to.box,
             [&](const std::vector<std::string>& at) { return IntBinary(to.dtype, name, at[0], at[1], at[2]); });
}

void ConvertTile(Emitter& e, const Tile& to, const Tile& from, const Box& box, bool spares) {
  Program p(e.platform());
  Value x = p.Input(0, from.dtype);
  Value made = to.dtype == from.dtype ? p.Copy(x) : p.Stored(p.Float(x), to.dtype);
  RunOnTiles(e, p, made, {to, from}, box, spares);
}

void EmitCompare(Emitter& e, const IOp& iop) {
  const std::string dtype(iop->dtype), name(iop->name);
  if (IsFloat(dtype)) {
    Program p(e.platform());
    auto seen = [&](int operand) {
      Value x = p.Input(operand, dtype);
      return dtype == "bf16" ? p.Float(x) : x;
    };
    Value a = seen(0), b = seen(1);
    RunProgram(e, p, p.Stored(p.Compare(UpperCase(name), a, b), "bool"), iop->targets[0],
               {iop->sources[0], iop->sources[1]});
    return;
  }
  static const std::map<std::string, std::string> signs = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},
                                                           {"le", "<="}, {"gt", ">"},  {"ge", ">="}};
  if (!IsWhole(dtype)) RefuseDtype(e, "comparisons", dtype);
  std::vector<Tile> tiles = e.TilesOf(iop->targets[0], {iop->sources[0], iop->sources[1]});
  ScalarLoop(e, tiles, tiles[0].box, [&](const std::vector<std::string>& at) {
    return std::vector<std::string>{at[0] + " = " + at[1] + " " + signs.at(name) + " " + at[2] + ";"};
  });
}

void EmitSelect(Emitter& e, const IOp& iop) {
  const std::string dtype(iop->dtype);
  std::vector<ISlice> sources = {iop->sources[0], iop->sources[1], iop->sources[2]};
  int64_t bytes = TypeOf(dtype, e.where()).bytes;
  if (bytes == 2 || bytes == 4) {
    Program p(e.platform());
    Value truth = p.Float(p.Input(0, "bool"));
    RunProgram(e, p, p.Select(truth, p.Input(1, dtype), p.Input(2, dtype)), iop->targets[0], sources);
    return;
  }
  std::vector<Tile> tiles = e.TilesOf(iop->targets[0], sources);
  ScalarLoop(e, tiles, tiles[0].box, [&](const std::vector<std::string>& at) {
    return std::vector<std::string>{at[0] + " = " + at[1] + " ? " + at[2] + " : " + at[3] + ";"};
  });
}

}  // namespace uir::codegen::bang
