// SPDX-License-Identifier: Apache-2.0
// The tables of named scalar functions in CUDA C++.
#include "codegen/cuda/functions.h"

#include <cmath>
#include <set>

#include "codegen/cuda/helpers.h"
#include "codegen/cuda/scalar.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {
namespace {

namespace ffi = tvm::ffi;

//! \brief One function; in its text $a, $b are the operands, $p the parameter, $f the suffix of C's functions,
//! $0 $1 $inf numbers.  The first row whose kinds hold the dtype counts.
struct Function {
  const char* name;
  /*! \brief Kinds of dtype: f(loat), i(nt), u(nsigned), b(ool). */
  const char* kinds;
  const char* text;
  /*! \brief Whether it calls the device function of the text's first word. */
  bool helper = false;
};

// clang-format off
constexpr Function kUnary[] = {
    {"copy", "fiub", "$a"},
    {"adds", "f", "$a + $p"},        {"adds", "iu", "wrap_add($a, $p)", true},
    {"subs", "f", "$a - $p"},        {"subs", "iu", "wrap_sub($a, $p)", true},
    {"muls", "f", "$a * $p"},        {"muls", "iu", "wrap_mul($a, $p)", true},
    {"divs", "f", "$a / $p"},
    {"maxs", "fiu", "max_of($a, $p)", true},
    {"mins", "fiu", "min_of($a, $p)", true},
    {"rsubs", "f", "$p - $a"},       {"rsubs", "iu", "wrap_sub($p, $a)", true},
    {"rdivs", "f", "$p / $a"},
    {"ands", "iu", "$a & $p"},
    {"shls", "iu", "shift_left($a, $p)", true}, {"shrs", "iu", "shift_right($a, $p)", true},
    {"exp", "f", "exp$f($a)"},       {"exp2", "f", "exp2$f($a)"},
    {"log", "f", "log$f($a)"},       {"log2", "f", "log2$f($a)"},     {"log1p", "f", "log1p$f($a)"},
    {"sqrt", "f", "sqrt$f($a)"},     {"rsqrt", "f", "rsqrt$f($a)"},   {"recip", "f", "$1 / $a"},
    {"abs", "f", "fabs$f($a)"},      {"abs", "i", "wrap_abs($a)", true}, {"abs", "u", "$a"},
    {"neg", "f", "-$a"},             {"neg", "i", "wrap_sub($0, $a)", true},
    {"sin", "f", "sin$f($a)"},       {"cos", "f", "cos$f($a)"},       {"tan", "f", "tan$f($a)"},
    {"asin", "f", "asin$f($a)"},     {"acos", "f", "acos$f($a)"},     {"atan", "f", "atan$f($a)"},
    {"sinh", "f", "sinh$f($a)"},     {"cosh", "f", "cosh$f($a)"},     {"tanh", "f", "tanh$f($a)"},
    {"asinh", "f", "asinh$f($a)"},   {"acosh", "f", "acosh$f($a)"},   {"atanh", "f", "atanh$f($a)"},
    {"erf", "f", "erf$f($a)"},       {"sigmoid", "f", "sigmoid($a)", true},
    {"relu", "fi", "max_of($a, $0)", true}, {"relu", "u", "$a"},
    {"leaky_relu", "f", "$a >= $0 ? $a : $a * $p"},
    {"floor", "f", "floor$f($a)"},   {"ceil", "f", "ceil$f($a)"},
    {"round", "f", "rint$f($a)"},    {"trunc", "f", "trunc$f($a)"},
    {"sign", "fi", "sign_of($a)", true},
    {"not", "iu", "~$a"},            {"not", "b", "!$a"},
    {"isnan", "f", "$a != $a"},      {"isinf", "f", "fabs$f($a) == $inf"},  {"isfinite", "f", "fabs$f($a) < $inf"},
};

//! \brief Powers with these constant exponents need no general power.  The interpreter's (NumPy's) power to 0.5 is
//! the root, so that of -inf is NaN; to -0.5 it is C's, 0.
struct Power {
  double exponent;
  const char* text;
  const char* helper;
};

constexpr Power kPowers[] = {
    {-1, "$1 / $a", ""}, {-0.5, "$1 / pow_half($a)", "pow_half"}, {0, "$1", ""},
    {0.5, "sqrt$f($a)", ""}, {1, "$a", ""}, {2, "$a * $a", ""}, {3, "$a * $a * $a", ""},
};

constexpr Function kBinary[] = {
    {"add", "f", "$a + $b"},         {"add", "iu", "wrap_add($a, $b)", true},
    {"sub", "f", "$a - $b"},         {"sub", "iu", "wrap_sub($a, $b)", true},
    {"mul", "f", "$a * $b"},         {"mul", "iu", "wrap_mul($a, $b)", true},
    {"div", "f", "$a / $b"},
    {"floordiv", "f", "floor$f($a / $b)"}, {"floordiv", "i", "floor_div($a, $b)", true},
    {"floordiv", "u", "trunc_div($a, $b)", true},
    {"mod", "fi", "floor_mod($a, $b)", true}, {"mod", "u", "trunc_mod($a, $b)", true},
    {"truncdiv", "f", "trunc$f($a / $b)"}, {"truncdiv", "iu", "trunc_div($a, $b)", true},
    {"truncmod", "f", "fmod$f($a, $b)"}, {"truncmod", "iu", "trunc_mod($a, $b)", true},
    {"max", "fiub", "max_of($a, $b)", true}, {"min", "fiub", "min_of($a, $b)", true},
    {"pow", "f", "pow$f($a, $b)"},   {"pow", "iu", "int_pow($a, $b)", true},
    {"atan2", "f", "atan2$f($a, $b)"},
    {"and", "iu", "$a & $b"},        {"and", "b", "$a && $b"},
    {"or", "iu", "$a | $b"},         {"or", "b", "$a || $b"},
    {"xor", "iu", "$a ^ $b"},        {"xor", "b", "$a != $b"},
    {"shl", "iu", "shift_left($a, $b)", true}, {"shr", "iu", "shift_right($a, $b)", true},
};

constexpr Function kCompare[] = {
    {"eq", "fiub", "$a == $b"}, {"ne", "fiub", "$a != $b"}, {"lt", "fiub", "$a < $b"},
    {"le", "fiub", "$a <= $b"}, {"gt", "fiub", "$a > $b"},  {"ge", "fiub", "$a >= $b"},
};
// clang-format on

const std::set<std::string> kPredicates = {"isnan", "isinf", "isfinite"};

struct Operands {
  std::string a, b, p;
};

std::string Fill(const std::string& pattern, const ScalarType& type, const Operands& operands) {
  std::string out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '$') {
      out += pattern[at];
      continue;
    }
    switch (pattern[++at]) {
      case 'a':
        out += operands.a;
        break;
      case 'b':
        out += operands.b;
        break;
      case 'p':
        out += operands.p;
        break;
      case 'f':
        out += type.bytes == 8 ? "" : "f";
        break;
      case '0':
        out += ComputeLiteral(type, int64_t{0});
        break;
      case '1':
        out += ComputeLiteral(type, int64_t{1});
        break;
      default:  // $inf
        out += IdentityLiteral("min", type.bytes == 8 ? "fp64" : "fp32");
        at += 2;
    }
  }
  return out;
}

template <size_t N>
const Function& Row(const Function (&table)[N], const char* what, const std::string& name, const ScalarType& type) {
  for (const Function& row : table) {
    bool takes = std::string(row.kinds).find(static_cast<char>(type.kind)) != std::string::npos;
    if (name == row.name && takes) return row;
  }
  CodegenError("CUDA C++ has no " + std::string(what) + "." + name + " of " + type.name + ".", "",
               "a function of the iOp table and a dtype that it takes");
}

Expression Made(const Function& row, const ScalarType& type, const Operands& operands, const char* result) {
  Expression out{Fill(row.text, type, operands), {}, result};
  std::string text = row.text;
  if (row.helper) out.helpers = {text.substr(0, text.find('(')) + ":" + type.name};
  return out;
}

template <typename Number>
std::string NumberText(const ScalarType& type, Number value) {
  std::string text = ComputeLiteral(type, value);
  return text[0] == '-' ? "(" + text + ")" : text;
}

std::string ParamText(const ScalarType& type, const ffi::Any& param) {
  if (auto whole = param.as<int64_t>()) return NumberText(type, *whole);
  return NumberText(type, param.cast<double>());
}

Expression PowerExpression(const ScalarType& type, const std::string& x, const ffi::Any& param) {
  Operands operands{x, ParamText(type, param), ""};
  if (type.kind == Kind::kFloat) {
    double exponent =
        RoundTo(type, param.as<int64_t>() ? static_cast<double>(*param.as<int64_t>()) : param.cast<double>());
    for (const Power& power : kPowers) {
      if (power.exponent != exponent) continue;
      Expression out{Fill(power.text, type, operands), {}, type.name};
      if (power.helper[0] != '\0') out.helpers = {std::string(power.helper) + ":" + type.name};
      return out;
    }
  }
  return Made(Row(kBinary, "binary", "pow", type), type, operands, type.name);
}

}  // namespace

std::set<std::string> FunctionNames() {
  std::set<std::string> out = {"copysign", "copysignf", "round", "roundf", "fabs", "fabsf"};
  auto add = [&out](const Function& row) {
    std::string text = row.text;
    size_t end = text.find("$f(");
    if (end == std::string::npos) return;
    std::string name = text.substr(0, end);
    out.insert({name, name + "f"});
  };
  for (const Function& row : kUnary) add(row);
  for (const Function& row : kBinary) add(row);
  return out;
}

Expression UnaryExpression(const std::string& name, const std::string& dtype, const std::string& x,
                           const ffi::Array<ffi::Any>& params) {
  const ScalarType& type = TypeOf(dtype);
  if (name == "pows") return PowerExpression(type, x, params[0]);
  const Function& row = Row(kUnary, "unary", name, type);
  Operands operands{x, "", params.empty() ? "" : ParamText(type, params[0])};
  return Made(row, type, operands, kPredicates.count(name) != 0 ? "bool" : type.name);
}

Expression BinaryExpression(const std::string& name, const std::string& dtype, const std::string& a,
                            const std::string& b) {
  const ScalarType& type = TypeOf(dtype);
  return Made(Row(kBinary, "binary", name, type), type, {a, b, ""}, type.name);
}

Expression CompareExpression(const std::string& name, const std::string& dtype, const std::string& a,
                             const std::string& b) {
  const ScalarType& type = TypeOf(dtype);
  return Made(Row(kCompare, "compare", name, type), type, {a, b, ""}, "bool");
}

Expression JoinExpression(const std::string& name, const std::string& dtype, const std::string& a,
                          const std::string& b) {
  return BinaryExpression(name, TypeOf(dtype).carried, a, b);
}

std::string IdentityLiteral(const std::string& name, const std::string& dtype) {
  const ScalarType& type = TypeOf(dtype);
  const ScalarType& carried = TypeOf(type.carried);
  if (name == "add") return ComputeLiteral(carried, int64_t{0});
  if (name == "mul") return ComputeLiteral(carried, int64_t{1});
  double sign = name == "max" ? -1 : 1;
  if (type.kind == Kind::kFloat) {
    bool finite = std::string(type.name) == "fp8e4m3";  // it has no infinity
    return ComputeLiteral(carried, sign * (finite ? 448.0 : INFINITY));
  }
  return LimitLiteral(type, name == "min", carried);
}

std::string Carry(const std::string& dtype, const std::string& value) {
  const ScalarType& type = TypeOf(dtype);
  if (type.kind == Kind::kFloat) return Widen(type, value);
  return std::string(type.name) == type.carried
             ? value
             : "static_cast<" + std::string(TypeOf(type.carried).compute) + ">(" + value + ")";
}

std::string Uncarry(const std::string& dtype, const std::string& value) {
  const ScalarType& type = TypeOf(dtype);
  if (type.kind == Kind::kFloat) return Narrow(type, value);
  if (type.kind == Kind::kBool) return value + " != 0";
  return std::string(type.name) == type.carried ? value
                                                : "static_cast<" + std::string(type.stored) + ">(" + value + ")";
}

}  // namespace uir::codegen::cuda
