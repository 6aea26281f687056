// SPDX-License-Identifier: Apache-2.0
// Integers wrap, division by zero gives zero, shifts beyond the width shift everything out.
#include "codegen/bang/functions_int.h"

#include "codegen/bang/api.h"

namespace uir::codegen::bang {

namespace {

struct Type {
  std::string name, wide;
  int bits;
  bool is_signed, is_bool;
};

Type TypeFor(const std::string& dtype) {
  const ScalarType& row = TypeOf(dtype);
  // arithmetic in an unsigned type of at least 32 bits wraps
  return {row.stored, row.bytes == 8 ? "uint64_t" : "uint32_t", row.bytes * 8, row.kind == Kind::kInt,
          row.kind == Kind::kBool};
}

std::string Wrapped(const Type& type, const std::string& a, const std::string& op, const std::string& b) {
  return "(" + type.name + ")((" + type.wide + ")" + a + " " + op + " (" + type.wide + ")" + b + ")";
}

/*! \brief Quotient q and rest r towards zero of x and y, then the wanted of four. */
std::vector<std::string> Divided(const Type& type, const std::string& name, const std::string& to) {
  std::string zero = "(" + type.name + ")0";
  std::vector<std::string> lines;
  if (type.is_signed) {
    // the least number over -1 has no quotient: it wraps
    lines = {"const " + type.name + " q = y == 0 ? " + zero + " : y == -1 ? " + Wrapped(type, "0", "-", "x") + " : (" +
                 type.name + ")(x / y);",
             "const " + type.name + " r = y == 0 || y == -1 ? " + zero + " : (" + type.name + ")(x % y);"};
  } else {
    lines = {"const " + type.name + " q = y == 0 ? " + zero + " : (" + type.name + ")(x / y);",
             "const " + type.name + " r = y == 0 ? " + zero + " : (" + type.name + ")(x % y);"};
  }
  std::string differ = "(r != 0 && (r < 0) != (y < 0))";
  bool floors = type.is_signed;
  if (name == "truncdiv" || (name == "floordiv" && !floors)) lines.push_back(to + " = q;");
  if (name == "truncmod" || (name == "mod" && !floors)) lines.push_back(to + " = r;");
  if (name == "floordiv" && floors) lines.push_back(to + " = (" + type.name + ")(q - " + differ + ");");
  if (name == "mod" && floors) lines.push_back(to + " = (" + type.name + ")(" + differ + " ? r + y : r);");
  return lines;
}

}  // namespace

bool IsWhole(const std::string& dtype) {
  const ScalarType* type = FindType(dtype);
  return type != nullptr && type->kind != Kind::kFloat;
}

std::vector<std::string> IntUnary(const std::string& dtype, const std::string& name, const std::string& to,
                                  const std::string& x, int64_t param) {
  const Type type = TypeFor(dtype);
  std::string c = "(" + type.name + ")" + ElementIntLiteral(param, "int64_t");
  std::string minus = Wrapped(type, "0", "-", x);
  auto made = [&to](const std::string& value) { return std::vector<std::string>{to + " = " + value + ";"}; };
  auto chosen = [&](const char* op) { return made(x + " " + op + " " + c + " ? " + x + " : " + c); };
  if (name == "copy") return made(x);
  if (type.is_bool) return name == "not" ? made(x + " == 0") : std::vector<std::string>{};
  if (name == "not") return made("(" + type.name + ")~" + x);
  if (name == "adds") return made(Wrapped(type, x, "+", c));
  if (name == "subs") return made(Wrapped(type, x, "-", c));
  if (name == "muls") return made(Wrapped(type, x, "*", c));
  if (name == "rsubs") return made(Wrapped(type, c, "-", x));
  if (name == "maxs") return chosen(">");
  if (name == "mins") return chosen("<");
  if (name == "neg") return made(minus);
  if (name == "ands") return made("(" + type.name + ")(" + x + " & " + c + ")");
  if (name == "shls" || name == "shrs") {
    const bool inside = 0 <= param && param < type.bits, left = name == "shls";
    if (!inside && (left || !type.is_signed)) return made("(" + type.name + ")0");
    const std::string by = std::to_string(inside ? param : type.bits - 1);
    return made("(" + type.name + ")(" + (left ? "(" + type.wide + ")" : std::string()) + x + (left ? " << " : " >> ") +
                by + ")");
  }
  if (name == "abs") return made(type.is_signed ? x + " < 0 ? " + minus + " : " + x : x);
  if (name == "relu") return made(x + " > 0 ? " + x + " : (" + type.name + ")0");
  if (name == "sign") return made("(" + type.name + ")((" + x + " > 0) - (" + x + " < 0))");
  if (name == "pows") {
    std::vector<std::string> lines = {"const " + type.wide + " x = (" + type.wide + ")" + x + ";"};
    if (param < 0) {
      // 1 stays, -1 has a sign, all else is truncated to 0
      std::string minus_one = param % 2 == 0 ? "1" : "-1";
      return made("(" + type.name + ")(" + x +
                  " == 1 ? 1 : " + (type.is_signed ? x + " == -1 ? " + minus_one + " : 0" : std::string("0")) + ")");
    }
    lines.push_back(type.wide + " power = 1, square = x;");
    lines.push_back("for (uint64_t left = " + ElementIntLiteral(param, "uint64_t") +
                    "; left > 0; left >>= 1, square *= square) power = left & 1 ? power * square : power;");
    lines.push_back(to + " = (" + type.name + ")power;");
    return lines;
  }
  return {};
}

std::vector<std::string> IntBinary(const std::string& dtype, const std::string& name, const std::string& to,
                                   const std::string& a, const std::string& b) {
  const Type type = TypeFor(dtype);
  std::vector<std::string> lines = {"const " + type.name + " x = " + a + ", y = " + b + ";"};
  auto made = [&](const std::string& value) {
    lines.push_back(to + " = " + value + ";");
    return lines;
  };
  if (name == "and") return made("(" + type.name + ")(x & y)");
  if (name == "or") return made("(" + type.name + ")(x | y)");
  if (name == "xor") return made("(" + type.name + ")(x ^ y)");
  if (name == "max") return made("x > y ? x : y");
  if (name == "min") return made("x < y ? x : y");
  if (type.is_bool) return {};
  if (name == "add") return made(Wrapped(type, "x", "+", "y"));
  if (name == "sub") return made(Wrapped(type, "x", "-", "y"));
  if (name == "mul") return made(Wrapped(type, "x", "*", "y"));
  if (name == "shl" || name == "shr") {
    std::string width = std::to_string(type.bits);
    std::string out = type.is_signed ? "y < 0 || y >= " + width : "y >= " + width;
    if (name == "shl") return made(out + " ? (" + type.name + ")0 : (" + type.name + ")((" + type.wide + ")x << y)");
    std::string rest = type.is_signed ? "(" + type.name + ")(x < 0 ? -1 : 0)" : "(" + type.name + ")0";
    return made(out + " ? " + rest + " : (" + type.name + ")(x >> y)");
  }
  if (name == "floordiv" || name == "mod" || name == "truncdiv" || name == "truncmod") {
    for (std::string& line : Divided(type, name, to)) lines.push_back(std::move(line));
    return lines;
  }
  return {};
}

}  // namespace uir::codegen::bang
