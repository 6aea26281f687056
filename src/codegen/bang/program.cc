// SPDX-License-Identifier: Apache-2.0
// What vector functions of BANG C must compose: rounding, selection by masks, division, e^x.
#include "codegen/bang/program.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "codegen/bang/api.h"
#include "codegen/tiles/functions.h"

namespace uir::codegen::bang {
namespace {

constexpr double kLn2 = 0.69314718055994530942;
// added to a float below 2^22 it leaves no bits behind the point
constexpr double kShifter = 12582912.0;
// beyond it every float is whole
constexpr double kWhole = 8388608.0;

std::string Lower(const std::string& mode) {
  std::string text;
  for (char c : mode) text += static_cast<char>(c - 'A' + 'a');
  return text;
}

/*! \brief Two digits of a byte. */
std::string Hex(int64_t byte) {
  const char digits[] = "0123456789abcdef";
  return {digits[byte >> 4 & 15], digits[byte & 15]};
}

/*! \brief Suffix of a conversion by a rounding mode. */
std::string Suffix(const std::string& mode) {
  static const std::map<std::string, std::string> table = {{"RINT", "rn"},  {"FLOOR", "dn"}, {"CEIL", "up"},
                                                           {"TRUNC", "tz"}, {"ROUND", "rd"}, {"", "rn"}};
  return table.at(mode);
}

}  // namespace

Value Program::Column(int operand, const std::string& dtype) {
  Step step;
  step.form = Step::Form::kInput;
  step.dtype = dtype;
  step.operand = operand;
  step.column = true;
  return Append(step);
}

Value Program::Plain(const std::string& api, const std::string& dtype, std::initializer_list<Value> args) {
  Step step;
  step.column = true;
  for (Value arg : args) step.column = step.column && steps_[arg.id].column;
  step.api = api;
  step.dtype = dtype;
  for (Value arg : args) step.args.push_back(arg.id);
  step.per = steps_[step.args[0]].per;
  return Append(step);
}

Value Program::WithNumber(const std::string& api, Value x, const std::string& literal) {
  Step step;
  step.form = Step::Form::kScalar;
  step.api = api;
  step.dtype = DtypeOf(x);
  step.args = {x.id};
  step.literal = literal;
  step.per = steps_[x.id].per;
  step.pack = steps_[x.id].pack;
  step.column = steps_[x.id].column;
  return Append(step);
}

double Program::Unscaled(Value* x) const {
  const Step& step = steps_[x->id];
  if (step.form != Step::Form::kScalar || step.api != "mul_scalar") return 1;
  x->id = step.args[0];
  return std::strtod(step.literal.c_str(), nullptr);
}

Value Program::Nearest(Value x) { return Adds(Adds(x, kShifter), -kShifter); }

Value Program::Apply(const std::string& api, Value x) {
  const std::string dtype = DtypeOf(x);
  if (api == "Exp") return Exp(*this, x);
  if (api == "Ln") return Muls(Plain("log2", dtype, {x}), kLn2);
  if (api == "Sqrt") return Plain("sqrt", dtype, {x});
  if (api == "Not") return Plain("bnot", dtype, {x});
  if (api == "Abs") {
    // the sign bit taken away
    bool half = ElementBytes(dtype) == 2;
    Value bits = View(x, half ? "int16" : "int32");
    return View(WithNumber("band_scalar", bits, half ? "static_cast<int16_t>(0x7fff)" : "0x7fffffff"), dtype);
  }
  return Plain(api, dtype, {x});
}

Value Program::Apply(const std::string& api, Value x, Value y) {
  static const std::map<std::string, std::string> names = {
      {"Add", "add"}, {"Sub", "sub"}, {"Mul", "mul"}, {"Max", "nan_maximum"}, {"Min", "nan_minimum"}};
  const std::string dtype = DtypeOf(x);
  TVM_FFI_CHECK(dtype == DtypeOf(y), InternalError) << api << " of " << dtype << " and " << DtypeOf(y);
  auto found = names.find(api);
  if (found != names.end()) return Plain(found->second, dtype, {x, y});
  // one reciprocal for a row
  if (api == "Div" && IsColumn(y)) return Mul(x, Plain("recip", dtype, {y}));
  if (api == "Div" && Table().Has("__bang_div", "count", platform_)) return Quotient(x, y);
  // within 2 ULP, but not to the last bit: quotients that must be whole are corrected by who needs them
  if (api == "Div") return Mul(x, Plain("recip", dtype, {y}));
  return Plain(api, dtype, {x, y});
}

// a zero becomes the one of its sign (the bits of a truth are those of 1 or 0), and the quotient by it infinite, or NaN
// of 0: what IEEE 754 has for it
Value Program::Quotient(Value x, Value y) {
  if (!IntervalOf(y).HasZero()) return Plain("div", "fp32", {x, y});
  Value zero = Compare("EQ", y, 0.0);
  Value infinite = View(WithNumber("bor_scalar", View(Muls(zero, 2), "int32"), "0x3f800000"), "fp32");
  return Mul(Plain("div", "fp32", {x, Bits("Or", y, zero)}), infinite);
}

Value Program::Scalar(const std::string& api, Value x, double number) {
  const std::string dtype = DtypeOf(x), literal = Literal(number, ElementType(dtype));
  if (api == "Adds") return WithNumber("add_scalar", x, literal);
  if (api == "Muls") return WithNumber("mul_scalar", x, literal);
  // the functions with a number do not say that they keep NaN
  if (api == "Maxs") return Max(x, Fill(dtype, literal));
  if (api == "Mins") return Min(x, Fill(dtype, literal));
  // one of the two sides is 0
  if (api == "LeakyRelu") return Add(Maxs(x, 0), Muls(Mins(x, 0), number));
  return WithNumber(api, x, literal);
}

// there is no conversion of bytes without a sign: 128 less is a byte with one.  There are no shifts of vectors: a
// shifted byte is a multiple of a power of two
Value Program::FloatOfByte(Value x, bool highest, int shift) {
  if (!highest) return shift > 0 ? Muls(Float(View(x, "int8")), std::ldexp(1.0, -shift)) : Float(View(x, "int8"));
  Value low = Float(View(WithNumber("bxor_scalar", View(x, "int16"), "static_cast<int16_t>(0x8080)"), "int8"));
  return Adds(shift > 0 ? Muls(low, std::ldexp(1.0, -shift)) : low, std::ldexp(128.0, -shift));
}

Value Program::ByteBits(Value x, int64_t mask, int shift) {
  const int64_t kept = mask & 0xff & (0xff << shift);
  const std::string dtype = DtypeOf(x);
  const std::string literal = "static_cast<int16_t>(0x" + Hex(kept) + Hex(kept) + ")";
  Value bytes = View(WithNumber("band_scalar", View(x, "int16"), literal), dtype);
  Value number = FloatOfByte(bytes, kept >= 128, shift);
  if (shift > 0) bytes = Stored(number, "uint8");
  floats_[bytes.id] = number;
  return bytes;
}

Value Program::Float(Value x) {
  const std::string dtype = DtypeOf(x);
  if (dtype == "fp32") return x;
  auto known = floats_.find(x.id);
  if (known != floats_.end()) return known->second;
  if (dtype == "uint8" && pairs_) return FloatOfByte(x, true, 0);
  if (dtype == "bool" || dtype == "uint8") {
    Value made = Float(View(x, "int8"));
    // the upper half was taken as below zero
    return dtype == "bool" ? made : Add(made, Muls(Compare("LT", made, 0.0), 256));
  }
  if (dtype == "int32" && !Table().Has("__bang_int322float_rn", "count", platform_)) {
    // two halves that floats hold: their sum is rounded
    Value high = FloatOfWhole(WithNumber("band_scalar", x, "static_cast<int32_t>(0xffff0000u)"));
    return Add(high, FloatOfWhole(WithNumber("band_scalar", x, "0x0000ffff")));
  }
  if (dtype == "bf16" && !Table().Has("__bang_bfloat162float", "count", platform_)) return FloatOfBfloat(x);
  static const std::map<std::string, std::string> names = {{"fp16", "half2float"},
                                                           {"bf16", "bfloat162float"},
                                                           {"int32", "int322float_rn"},
                                                           {"int16", "int162float"},
                                                           {"int8", "int82float"}};
  auto found = names.find(dtype);
  TVM_FFI_CHECK(found != names.end(), InternalError) << dtype << " as fp32";
  return Widened(x, found->second);
}

Value Program::FloatOfWhole(Value x) {
  bool nearest = Table().Has("__bang_int322float_rn", "count", platform_);
  return Widened(x, nearest ? "int322float_rn" : "int2float");
}

Value Program::Widened(Value x, const std::string& api) {
  Step step;
  step.form = Step::Form::kCast;
  step.api = api;
  step.dtype = "fp32";
  step.args = {x.id};
  step.column = steps_[x.id].column;
  return Append(step);
}

Value Program::Stored(Value x, const std::string& dtype) {
  if (dtype == "fp32") return x;
  if (dtype == "uint8") return View(Stored(Add(x, Muls(Compare("GE", x, 128.0), -256)), "int8"), dtype);
  if (dtype == "bool") return View(Stored(x, "int8"), dtype);
  return Cast(x, dtype, dtype == "fp16" || dtype == "bf16" || dtype == "int32" ? "RINT" : "TRUNC");
}

Value Program::Cast(Value x, const std::string& dtype, const std::string& mode) {
  const std::string from = DtypeOf(x);
  if (from != "fp32") return dtype == "fp32" ? Float(x) : Cast(Float(x), dtype, mode);
  if (dtype == "fp32") {
    // what is larger has no fraction
    return Select(Compare("LT", Apply("Abs", x), kWhole), Rounded(x, mode), x);
  }
  if (dtype == "bf16" && !Table().Has("__bang_float2bfloat16_rn", "count", platform_)) return BfloatOf(x, mode);
  static const std::map<std::string, std::string> names = {{"fp16", "float2half_"},
                                                           {"bf16", "float2bfloat16_"},
                                                           {"int32", "float2int32_"},
                                                           {"int16", "float2int16_"},
                                                           {"int8", "float2int8_"}};
  const std::string name = "__bang_" + names.at(dtype) + Suffix(mode);
  if (dtype == "int32" && !Table().Has(name, "count", platform_)) return Cast(Rounded(x, mode), dtype, "TRUNC");
  Step step;
  step.form = Step::Form::kCast;
  step.api = names.at(dtype) + Suffix(mode);
  step.dtype = dtype;
  step.args = {x.id};
  return Append(step);
}

Value Program::Rounded(Value x, const std::string& mode) {
  if (Table().Has("__bang_float2int32_" + Suffix(mode), "count", platform_))
    return FloatOfWhole(Cast(x, "int32", mode));
  // one less, or more, than what lies towards zero, where that is on the wrong side of x
  TVM_FFI_CHECK(mode == "FLOOR" || mode == "CEIL", InternalError) << "rounding by " << mode;
  bool down = mode == "FLOOR";
  Value whole = FloatOfWhole(Cast(x, "int32", "TRUNC")), beyond = Compare(down ? "GT" : "LT", whole, x);
  return down ? Sub(whole, beyond) : Add(whole, beyond);
}

// the upper half of a word: 16 bits, as a float, times 2^16 have no error
Value Program::FloatOfBfloat(Value x) {
  Value high = Muls(Float(View(x, "int16")), 65536);
  return View(Cast(high, "int32", "TRUNC"), "fp32");
}

// the upper half of the word, one more where the lower one rounds away from zero
Value Program::BfloatOf(Value x, const std::string& mode) {
  Value bits = View(x, "int32");
  auto part = [&](const char* mask) { return FloatOfWhole(WithNumber("band_scalar", bits, mask)); };
  Value high = Muls(part("static_cast<int32_t>(0xffff0000u)"), 1.0 / 65536), low = part("0x0000ffff");
  Value made = high;
  if (mode == "FLOOR" || mode == "CEIL") {
    Value away = Compare(mode == "FLOOR" ? "LT" : "GT", x, 0.0);
    made = Add(high, Mul(away, Compare("GT", low, 0.0)));
  } else if (mode == "ROUND") {
    made = Add(high, Compare("GE", low, 32768));
  } else if (mode != "TRUNC") {
    // halves to even: an odd number is rounded up by a half too
    Value odd = Muls(part("0x00010000"), 1.0 / 65536);
    made = Add(high, Compare("GT", Add(low, odd), 32768));
  }
  // a NaN stays one
  made = Select(Compare("EQ", x, x), made, 32704);
  return View(Cast(made, "int16", "TRUNC"), "bf16");
}

Value Program::Compare(const std::string& mode, Value x, Value y) {
  return Float(Plain(Lower(mode), DtypeOf(x), {x, y}));
}

Value Program::Compare(const std::string& mode, Value x, double number) {
  const std::string dtype = DtypeOf(x);
  return Float(WithNumber(Lower(mode) + "_scalar", x, Literal(number, ElementType(dtype))));
}

Value Program::Mask(Value truth, int64_t bytes) {
  auto known = masks_.find({truth.id, bytes});
  if (known != masks_.end()) return known->second;
  Value minus = WithNumber("mul_scalar", truth, "-1.0f");
  Value mask = bytes == 4 ? Cast(minus, "int32", "TRUNC") : Cast(minus, "int16", "TRUNC");
  masks_[{truth.id, bytes}] = mask;
  return mask;
}

Value Program::Select(Value bits, Value x, Value y) {
  const std::string own = DtypeOf(x);
  int64_t bytes = ElementBytes(own);
  const std::string word = bytes == 4 ? "int32" : "int16";
  TVM_FFI_CHECK(bytes == 2 || bytes == 4, InternalError) << "a selection of " << own;
  // y where the mask is 0: y ^ ((x ^ y) & mask)
  Value a = View(x, word), b = View(y, word);
  Value apart = Plain("bxor", word, {a, b});
  Value taken = Plain("band", word, {apart, Mask(bits, bytes)});
  return View(Plain("bxor", word, {taken, b}), own);
}

Value Program::Select(Value bits, Value x, double number) {
  const std::string own = DtypeOf(x);
  if (number == 0 && !std::signbit(number)) {
    const std::string word = ElementBytes(own) == 4 ? "int32" : "int16";
    return View(Plain("band", word, {View(x, word), Mask(bits, ElementBytes(own))}), own);
  }
  return Select(bits, x, Fill(own, Literal(number, ElementType(own))));
}

Value Program::Copy(Value x) {
  if (ElementBytes(DtypeOf(x)) == 1) return Stored(Float(x), DtypeOf(x));
  const std::string own = DtypeOf(x), word = ElementBytes(own) >= 4 ? "int32" : "int16";
  Value seen = View(x, word);
  return View(Plain("bor", word, {seen, seen}), own);
}

Value Program::Bits(const std::string& api, Value x, Value y) {
  const std::string own = DtypeOf(x), word = ElementBytes(own) >= 4 ? "int32" : "int16";
  return View(Plain("b" + Lower(std::string(1, api[0])) + api.substr(1), word, {View(x, word), View(y, word)}), own);
}

// a power of two has no error; two factors since n may exceed what one float has
Value Program::TimesPowerOfTwo(Value x, Value n) {
  Value half = Nearest(Muls(n, 0.5)), rest = Sub(n, half);
  return Mul(Mul(x, Plain("pow2", "fp32", {half})), Plain("pow2", "fp32", {rest}));
}

void Program::SplitFloat(Value x, Value* e, Value* m) {
  Value bits = View(x, "int32");
  // at most eight bits of the exponent are left: the conversion is exact
  *e = Muls(FloatOfWhole(WithNumber("band_scalar", bits, "0x7f800000")), std::ldexp(1.0, -23));
  Value fraction = WithNumber("band_scalar", bits, "0x007fffff");
  *m = View(WithNumber("bor_scalar", fraction, "0x3f800000"), "fp32");
}

}  // namespace uir::codegen::bang
