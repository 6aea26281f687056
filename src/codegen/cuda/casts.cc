// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes, with their roundings, as CUDA C++ expressions.
#include "codegen/cuda/functions.h"
#include "codegen/cuda/scalar.h"

namespace uir::codegen::cuda {
namespace {

/*! \brief The suffix of the conversion instructions by the name of a rounding; "round" (halves away) has none. */
std::string Suffix(const std::string& round) {
  if (round == "rint") return "rn";
  if (round == "floor") return "rd";
  return round == "ceil" ? "ru" : "rz";
}

std::string StaticCast(const std::string& type, const std::string& value) {
  return "static_cast<" + type + ">(" + value + ")";
}

void Add(Expression* out, const std::vector<std::string>& helpers) {
  out->helpers.insert(out->helpers.end(), helpers.begin(), helpers.end());
}

Expression FloatToInt(const ScalarType& from, const ScalarType& to, const std::string& round, const std::string& x) {
  Expression out{"", {}, to.name};
  Add(&out, ConversionHelpers(from));
  bool twice = from.bytes == 8;
  std::string value = Widen(from, x);
  std::string rounded = round == "round" ? std::string("round") + (twice ? "" : "f") + "(" + value + ")" : value;
  std::string word = std::string(to.kind == Kind::kUint ? "u" : "") + (to.bytes == 8 ? "ll" : "int");
  std::string call = std::string(twice ? "__double2" : "__float2") + word + "_" + Suffix(round) + "(" + rounded + ")";
  if (to.bytes < 4) {
    call = std::string("saturate_") + to.name + "(" + call + ")";
    out.helpers.push_back(std::string("saturate:") + to.name);
  }
  // conversions of and to 64 bits make another number of NaN
  bool guarded = twice || to.bytes == 8;
  std::string zero = ComputeLiteral(to, int64_t{0});
  if (to.bytes == 8) call = StaticCast(to.stored, call);
  out.text = guarded ? value + " != " + value + " ? " + zero + " : " + call : call;
  return out;
}

/*! \brief fp64 as a float that the next conversion may round as if it were the fp64. */
std::string Halfway(const std::string& round, const std::string& x, Expression* out) {
  if (round != "rint" && round != "round") return "__double2float_" + Suffix(round) + "(" + x + ")";
  out->helpers.push_back("to_odd");
  return "to_odd(" + x + ")";
}

Expression FloatToNarrower(const ScalarType& from, const ScalarType& to, const std::string& round,
                           const std::string& x) {
  Expression out{"", {}, to.name};
  Add(&out, ConversionHelpers(from));
  Add(&out, ConversionHelpers(to));
  bool twice = from.bytes == 8;
  std::string value = Widen(from, x);
  bool by_function = round == "round" || (to.bytes == 1 && round != "rint");
  if (twice && to.bytes < 4) value = Halfway(round, value, &out);
  if (by_function) {
    out.helpers.push_back(round + "_to:" + to.name);
    out.text = round + "_to_" + to.name + "(" + value + ")";
  } else if (to.bytes == 1) {
    out.text = Narrow(to, value);
  } else {
    std::string call = to.bytes == 4                    ? "__double2float"
                       : std::string(to.name) == "fp16" ? "__float2half"
                                                        : "__float2bfloat16";
    out.text = call + "_" + Suffix(round) + "(" + value + ")";
  }
  return out;
}

}  // namespace

Expression CastExpression(const std::string& from_name, const std::string& to_name, const std::string& round,
                          const std::string& x) {
  const ScalarType &from = TypeOf(from_name), &to = TypeOf(to_name);
  bool from_float = from.kind == Kind::kFloat, to_float = to.kind == Kind::kFloat;
  if (from_name == to_name) return {x, {}, to_name};
  if (from_float && to.kind != Kind::kFloat && to.kind != Kind::kBool) {
    return FloatToInt(from, to, round.empty() ? "trunc" : round, x);
  }
  if (from_float && to_float && to.bytes < from.bytes) {
    return FloatToNarrower(from, to, round.empty() ? "rint" : round, x);
  }
  Expression out{"", {}, to_name};
  Add(&out, ConversionHelpers(from));
  if (to.kind == Kind::kBool) {
    out.text = Widen(from, x) + " != " + ComputeLiteral(from, int64_t{0});
  } else if (to_float) {
    Add(&out, ConversionHelpers(to));
    bool same = from_float && std::string(from.compute) == to.compute;
    out.text = Narrow(to, same ? Widen(from, x) : StaticCast(to.compute, Widen(from, x)));
  } else {
    out.text = StaticCast(to.stored, x);
  }
  return out;
}

}  // namespace uir::codegen::cuda
