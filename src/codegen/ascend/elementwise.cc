// SPDX-License-Identifier: Apache-2.0
// unary, binary, compare, select and fill: which steps an element takes in its dtype.
//
// fp32 is computed as it is; fp16 too where the vector core's half function rounds once, else through fp32; bf16
// through fp32 always, rounded after every iOp.  8-bit integers are computed in int16, int16 and int32 as they are,
// int64 by its words; its quotients are the scalar unit's.
#include "codegen/ascend/elementwise.h"

#include <cmath>
#include <map>
#include <set>

#include "codegen/ascend/api.h"
#include "codegen/ascend/functions.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/scalar_unit.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/spread.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/attributes.h"
#include "codegen/number.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Functions of two floats that are one function of the vector core. */
const std::map<std::string, std::string>& PlainBinary() {
  static const std::map<std::string, std::string> names = {{"add", "Add"}, {"sub", "Sub"}, {"mul", "Mul"},
                                                           {"div", "Div"}, {"max", "Max"}, {"min", "Min"}};
  return names;
}

[[noreturn]] void RefuseDtype(const Emitter& e, const IOp& iop) {
  std::string dtype(iop->dtype), reason = "there is no vector function for it";
  if (dtype == "fp64") reason = "the vector core has no fp64";
  e.Refuse("The vector core cannot compute " + std::string(iop->op) + "." + std::string(iop->name) + " of " + dtype +
               ": " + reason + ".",
           "", "", "run this operator on the host");
}

//! \brief Whether bytes can be worked on in pairs: then every pair holds two elements of the box, and no byte that
//! nobody wrote comes into the word of one that counts.
bool InPairs(Emitter& e, const std::vector<ISlice>& slices) {
  for (const ISlice& slice : slices) {
    Tile tile = AsRow(e.TileOf(slice));
    if (tile.cols % 2 != 0 || !tile.box.AllCols(tile.cols)) return false;
  }
  return true;
}

/*! \brief A bool, or pairs of bytes of 8-bit numbers, as bits: no byte carries into the other. */
Value ByteBits(Program& p, const std::string& name, const std::string& dtype, Value x, Value y, bool pairs) {
  auto seen = [&](Value v) { return pairs ? p.View(v, "int16") : Widen8(p, v); };
  auto stored = [&](Value v) { return pairs ? p.View(v, dtype) : Narrow8(p, v, dtype, name != "not"); };
  Value a = seen(x);
  if (name == "not") {
    if (dtype != "bool") return stored(p.Apply("Not", a));
    return stored(p.ScalarInt("Adds", p.ScalarInt("Muls", a, -1), pairs ? 0x101 : 1));
  }
  Value b = seen(y);
  Value made = name == "and"  ? p.Apply("And", a, b)
               : name == "or" ? p.Apply("Or", a, b)
                              : p.Apply("Sub", p.Apply("Or", a, b), p.Apply("And", a, b));
  return stored(made);
}

//! \brief Bits of pairs of bytes under a mask, or what a shift to the right leaves of bytes without a sign; id -1 for
//! other functions.
Value PairedBits(Program& p, const std::string& name, const std::string& dtype, Value x, int64_t c) {
  auto masked = [&p](Value words, int64_t mask) {
    return p.Bits("And", words, p.Fill("int16", IntLiteral(static_cast<int16_t>((mask & 0xff) * 0x101), "int16_t")));
  };
  if (name == "ands") return p.View(masked(p.View(x, "int16"), c), dtype);
  if (name != "shrs" || dtype != "uint8" || c <= 0 || c > 7) return {-1};
  Value words = p.View(p.Shr(p.View(x, "uint16"), static_cast<int>(c)), "int16");
  return p.View(masked(words, 0xff >> c), dtype);
}

/*! \brief Which functions of 8-bit integers stay in range. */
bool StaysInRange(const std::string& name) {
  static const std::set<std::string> names = {"max", "min",  "sign", "relu", "mod", "truncmod",
                                              "shr", "shrs", "ands", "maxs", "mins"};
  return names.count(name) > 0;
}

Value FloatOf(Program& p, const std::string& name, Value x, Value y, double param) {
  return y.id < 0 ? FloatUnary(p, name, x, param) : FloatBinary(p, name, x, y);
}

/*! \brief One scalar function of stored values; id -1 where the dtype has none. */
Value Computed(Program& p, const std::string& name, const std::string& dtype, Value x, Value y, double param,
               bool pairs) {
  bool unary = y.id < 0;
  if (unary && name == "copy") return CopyOf(p, x, pairs);
  if (IsFloat(dtype)) {
    double held = RoundFloat(dtype, param);
    if (!(unary ? HasFloatUnary(name) : HasFloatBinary(name))) return {-1};
    bool tests = name == "isnan" || name == "isinf" || name == "isfinite";
    if (dtype == "fp32" || (dtype == "fp16" && RoundsOnceInHalf(name))) {
      Value made = FloatOf(p, name, x, y, held);
      return tests ? BoolOf(p, made) : made;
    }
    Value made = FloatOf(p, name, ToFloat(p, x), unary ? y : ToFloat(p, y), held);
    return tests ? BoolOf(p, made) : p.Cast(made, dtype, "RINT");
  }
  int64_t whole = static_cast<int64_t>(param);
  if (IsByte(dtype)) {
    if (name == "not" || name == "and" || name == "or" || name == "xor") return ByteBits(p, name, dtype, x, y, pairs);
    if (dtype == "bool") return {-1};
    Value bits = unary && pairs ? PairedBits(p, name, dtype, x, whole) : Value{-1};
    if (bits.id >= 0) return bits;
    Value made = unary ? IntUnary(p, name, Widen8(p, x), whole) : IntBinary(p, name, Widen8(p, x), Widen8(p, y));
    if (made.id < 0) return made;
    return Narrow8(p, made, dtype, StaysInRange(name));
  }
  if (dtype == "int64") return unary ? WideUnary(p, name, x, whole) : WideBinary(p, name, x, y);
  if (!IsWord(dtype)) return {-1};
  return unary ? IntUnary(p, name, x, whole) : IntBinary(p, name, x, y);
}

/*! \brief Bits of a comparison; `inverted`: a bit is 1 where it does not hold. */
Value Compared(Program& p, const std::string& name, const std::string& dtype, Value x, Value y, bool* inverted) {
  *inverted = false;
  if (dtype == "int64") return WideCompare(p, name, x, y, inverted);
  if (dtype == "int32") return IntCompare(p, name, x, y, inverted);
  if (IsByte(dtype)) {
    x = p.Cast(x, "fp16", "NONE");
    y = p.Cast(y, "fp16", "NONE");
  } else if (dtype != "fp16") {
    x = ToFloat(p, x);
    y = ToFloat(p, y);
  }
  return p.Compare(UpperCase(name), x, y);
}

/*! \brief What a bool chooses between. */
Value Chosen(Program& p, const std::string& dtype, Value flag, Value a, Value b) {
  if (BytesOf(dtype) == 8) {
    // all bits of a number, or none, by the sign that a word of -1 or 0 extends
    Value word = p.ScalarInt("Muls", p.Cast(p.Cast(flag, "fp16", "NONE"), "int32", "RINT"), -1);
    Value mask = p.View(p.Cast(word, "int64", "NONE"), "int16");
    Value taken = p.Apply("And", p.View(a, "int16"), mask);
    Value kept = p.Apply("And", p.View(b, "int16"), p.Apply("Not", mask));
    return p.View(p.Apply("Or", taken, kept), dtype);
  }
  Value bits = BitsOf(p, flag);
  if (!IsByte(dtype)) return p.Select(bits, a, b);
  Value made = p.Select(bits, p.Cast(a, "fp16", "NONE"), p.Cast(b, "fp16", "NONE"));
  return p.Cast(made, dtype == "int8" ? "int8" : "uint8", "RINT");
}

}  // namespace

Value CopyOf(Program& p, Value x, bool pairs) {
  const std::string dtype = p.DtypeOf(x);
  if (!IsByte(dtype) || pairs) return p.Copy(x);
  return p.Cast(p.Cast(x, "fp16", "NONE"), dtype == "int8" ? "int8" : "uint8", "RINT");
}

void EmitUnary(Emitter& e, const IOp& iop) {
  Program p;
  std::string dtype(iop->dtype);
  Value made = Computed(p, std::string(iop->name), dtype, p.Input(0, dtype), {-1}, AsDouble(ParamOf(iop)),
                        InPairs(e, {iop->targets[0], iop->sources[0]}));
  if (made.id < 0) RefuseDtype(e, iop);
  RunProgram(e, p, made, iop->targets[0], {iop->sources[0]});
}

void EmitBinary(Emitter& e, const IOp& iop) {
  std::string dtype(iop->dtype), name(iop->name);
  if (HasScalarQuotient(dtype, name)) {
    EmitScalarQuotient(e, iop);
    return;
  }
  auto plain = PlainBinary().find(name);
  bool spread = IsSpread(iop->sources[0]) != IsSpread(iop->sources[1]);
  bool one_call = dtype == "fp32" || (dtype == "fp16" && RoundsOnceInHalf(name));
  if (spread && plain != PlainBinary().end() && one_call && SpreadReaches(e, iop)) {
    EmitSpread(e, plain->second, iop);
    return;
  }
  Program p;
  if (name == "pow" && !IsFloat(dtype)) {
    e.Refuse("The vector core raises integers to constant powers only.", "unary.pows", "",
             "run this operator on the host");
  }
  Value made = Computed(p, name, dtype, p.Input(0, dtype), p.Input(1, dtype), 0,
                        InPairs(e, {iop->targets[0], iop->sources[0], iop->sources[1]}));
  if (made.id < 0) RefuseDtype(e, iop);
  RunProgram(e, p, made, iop->targets[0], {iop->sources[0], iop->sources[1]});
}

void EmitCompare(Emitter& e, const IOp& iop) {
  Program p;
  std::string dtype(iop->dtype);
  if (!IsFloat(dtype) && !IsByte(dtype) && !IsWord(dtype) && dtype != "int64") RefuseDtype(e, iop);
  bool inverted = false;
  Value bits = Compared(p, std::string(iop->name), dtype, p.Input(0, dtype), p.Input(1, dtype), &inverted);
  RunProgram(e, p, BoolOf(p, bits, inverted), iop->targets[0], {iop->sources[0], iop->sources[1]});
}

void EmitSelect(Emitter& e, const IOp& iop) {
  Program p;
  std::string dtype(iop->dtype);
  Value made = Chosen(p, dtype, p.Input(0, "bool"), p.Input(1, dtype), p.Input(2, dtype));
  RunProgram(e, p, made, iop->targets[0], {iop->sources[0], iop->sources[1], iop->sources[2]});
}

void EmitCopy(Emitter& e, const ISlice& target, const ISlice& source) {
  Program p;
  Value x = p.Input(0, std::string(target->pointer->dtype));
  RunProgram(e, p, CopyOf(p, x, InPairs(e, {target, source})), target, {source});
}

void EmitFill(Emitter& e, const IOp& iop) {
  const ISlice& target = iop->targets[0];
  const ffi::Any value = iop->attrs.at("value");
  if (target->pointer->level != "dram") {
    FillSlice(e, target, value);
    return;
  }
  Tile to = e.TileOf(target), work = e.Work(to.dtype, to.rows, to.cols);
  FillTile(e, work, value);
  Store(e, to, work);
}

void FillSlice(Emitter& e, const ISlice& target, const ffi::Any& value) {
  Program p;
  std::string dtype(target->pointer->dtype);
  if (IsByte(dtype)) {
    double number = value.cast<double>();
    Value held = p.Fill("fp16", Literal(dtype == "bool" ? number != 0 : number, "half"));
    RunProgram(e, p, p.Cast(held, dtype == "int8" ? "int8" : "uint8", "RINT"), target, {});
    return;
  }
  if (BytesOf(dtype) == 8) {
    RunProgram(e, p, WideConstant(p, value.cast<int64_t>()), target, {});
    return;
  }
  RunProgram(e, p, p.Fill(dtype, e.Literal(dtype, value)), target, {});
}

}  // namespace uir::codegen::ascend
