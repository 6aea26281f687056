// SPDX-License-Identifier: Apache-2.0
// Conversions: which steps lead from one dtype to another.
//
// The vector core converts between neighbours only (its Cast has no int8 <-> float, no int32 <-> half, no bool).
// Integers wrap when they are narrowed; floats out of an integer's range give what the hardware makes of them.
#include "codegen/ascend/api.h"
#include "codegen/ascend/functions.h"
#include "codegen/ascend/ops.h"
#include "codegen/attributes.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief CAST_ mode of an attribute `round`. */
std::string ModeOf(const std::string& round, const std::string& otherwise) {
  return round.empty() ? otherwise : UpperCase(round);
}

/*! \brief The low word of an int32 held to the range of a narrower integer, as int32. */
Value Wrapped(Program& p, Value x, const std::string& to) {
  int shift = 32 - static_cast<int>(BytesOf(to)) * 8;
  Value high = p.Shl(x, shift);
  bool is_signed = to == "int8" || to == "int16";
  if (is_signed) return p.Shr(high, shift);
  return p.View(p.Shr(p.View(high, "uint32"), shift), "int32");
}

/*! \brief Whole floats within a dtype's range as that dtype. */
Value FromWhole(Program& p, Value x, const std::string& to) {
  if (to == "int8" || to == "uint8") return p.Cast(p.Cast(x, "fp16", "RINT"), to, "RINT");
  return p.Cast(x, to, "RINT");
}

Value ToBool(Program& p, Value x) {
  const std::string from = p.DtypeOf(x);
  if (IsByte(from)) return BoolOf(p, BitsOf(p, x));
  if (from == "fp16" || from == "fp32") return BoolOf(p, p.Compare("NE", x, 0.0));
  if (from == "int32") return BoolOf(p, p.Compare("EQ", x, p.Fill("int32", "0")), true);
  // no number but 0 is rounded to 0
  return BoolOf(p, p.Compare("NE", ToFloat(p, x), 0.0));
}

Value FromFloat(Program& p, Value x, const std::string& to, const std::string& round) {
  const std::string from = p.DtypeOf(x);
  std::string down = ModeOf(round, "RINT"), whole = ModeOf(round, "TRUNC");
  if (IsFloat(to)) {
    if (BytesOf(to) < BytesOf(from)) return p.Cast(x, to, down);
    // between the narrow ones through fp32; each of them loses something of the other
    return to == "fp32" ? ToFloat(p, x) : p.Cast(ToFloat(p, x), to, down);
  }
  bool direct = from == "fp32"   ? to == "int16" || to == "int32" || to == "int64"
                : from == "fp16" ? to != "int64"
                                 : to == "int32";
  if (direct) return p.Cast(x, to, whole);
  Value wide = ToFloat(p, x);
  if (to == "int16" || to == "int32" || to == "int64") return p.Cast(wide, to, whole);
  return FromWhole(p, p.Whole(wide, whole), to);
}

Value FromInt(Program& p, Value x, const std::string& to, const std::string& round) {
  const std::string from = p.DtypeOf(x);
  if (IsFloat(to)) {
    if (to == "fp16" && BytesOf(from) <= 2) return p.Cast(x, to, IsByte(from) ? "NONE" : "RINT");
    Value wide = ToFloat(p, x);
    return to == "fp32" ? wide : p.Cast(wide, to, ModeOf(round, "RINT"));
  }
  // up to int32 first, then down
  Value word = x;
  if (IsByte(from)) word = p.Cast(p.Cast(x, "fp16", "NONE"), "int32", "RINT");
  if (from == "int16") word = p.Cast(p.Cast(x, "fp32", "NONE"), "int32", "RINT");
  // the low word: a cast would take the nearest int32
  if (from == "int64") word = LowWord(p, x);
  if (to == "int32") return word;
  if (to == "int64") return p.Cast(word, to, "NONE");
  bool fits = from == "uint8" || from == "bool" ? to != "int8" || from == "bool" : from == "int8" && to == "int16";
  if (!fits) word = Wrapped(p, word, to);
  if (to == "int16") return p.Cast(word, to, "NONE");
  return p.Cast(p.Cast(p.Cast(word, "fp32", "RINT"), "fp16", "RINT"), to, "RINT");
}

}  // namespace

Value ToFloat(Program& p, Value x) {
  const std::string from = p.DtypeOf(x);
  if (from == "fp32") return x;
  if (IsByte(from)) return p.Cast(p.Cast(x, "fp16", "NONE"), "fp32", "NONE");
  return p.Cast(x, "fp32", from == "int32" || from == "int64" ? "RINT" : "NONE");
}

Value CastValue(Program& p, Value x, const std::string& to, const std::string& round, const std::string& where) {
  const std::string from = p.DtypeOf(x);
  for (const std::string& dtype : {from, to}) {
    bool known = IsFloat(dtype) || IsByte(dtype) || IsWord(dtype) || dtype == "int64";
    if (!known) {
      CodegenError("The vector core does not convert " + from + " to " + to + ".", where,
                   "fp32, fp16, bf16, int8, uint8, bool, int16, int32 or int64", "", "run this operator on the host");
    }
  }
  if (from == to) return p.Copy(x);
  if (to == "bool") return ToBool(p, x);
  return IsFloat(from) ? FromFloat(p, x, to, round) : FromInt(p, x, to, round);
}

void EmitCast(Emitter& e, const IOp& iop) {
  Program p;
  Value result = CastValue(p, p.Input(0, std::string(iop->name)), std::string(iop->dtype), RoundOf(iop), e.where());
  RunProgram(e, p, result, iop->targets[0], {iop->sources[0]});
}

}  // namespace uir::codegen::ascend
