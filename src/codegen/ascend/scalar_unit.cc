// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/scalar_unit.h"

#include <tvm/ffi/any.h>

#include <map>

#include "codegen/ascend/api.h"
#include "codegen/ascend/vector_run.h"
#include "codegen/attributes.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Of `a` and `b`, where b is neither 0 nor -1; and by -1, which the quotient of the least number overflows. */
struct Quotient {
  const char* text;
  const char* by_minus_one;
};

const std::map<std::string, Quotient>& Quotients() {
  static const char negated[] = "static_cast<int64_t>(0 - static_cast<uint64_t>(a))";
  static const std::map<std::string, Quotient> table = {
      {"truncdiv", {"a / b", negated}},
      {"truncmod", {"a % b", "0"}},
      {"floordiv", {"a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)", negated}},
      {"mod", {"a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0)", "0"}},
  };
  return table;
}

/*! \brief How a number `x` joins what is held in `sum`, an int64. */
std::string Joined(const std::string& name, const std::string& sum, const std::string& x) {
  if (name == "max" || name == "min") {
    return x + (name == "max" ? " > " : " < ") + sum + " ? " + x + " : " + sum;
  }
  // unsigned: it may wrap
  std::string sign = name == "add" ? " + " : " * ";
  return "static_cast<int64_t>(static_cast<uint64_t>(" + sum + ")" + sign + "static_cast<uint64_t>(" + x + "))";
}

std::string ScalarIdentity(const std::string& name) {
  if (name == "max") return IntLiteral(INT64_MIN, "int64_t");
  if (name == "min") return IntLiteral(INT64_MAX, "int64_t");
  return name == "mul" ? "1" : "0";
}

}  // namespace

std::string OffsetText(const Emitter& e, const Tile& tile, const std::string& row, const std::string& col) {
  std::string text = e.Text(tile.offset);
  auto add = [&text](const std::string& index, int64_t stride, const std::string& product) {
    if (index == "0" || stride == 0) return;
    text = (text == "0" ? "" : text + " + ") + product;
  };
  add(row, tile.row_stride, e.RowText(tile, row));
  add(col, tile.col_stride, TimesText(col, tile.col_stride));
  return text;
}

std::string Member(const Emitter& e, const Tile& tile, const std::string& member, std::vector<std::string> args) {
  args.insert(args.begin(), tile.tensor);
  std::string of = tile.memory == "ub" ? "LocalTensor." : "GlobalTensor.";
  return e.Call(of + member, "member", {ElementType(tile.dtype)}, args);
}

bool HasScalarQuotient(const std::string& dtype, const std::string& name) {
  return dtype == "int64" && Quotients().count(name) > 0;
}

void EmitScalarQuotient(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]), x = e.TileOf(iop->sources[0]), y = e.TileOf(iop->sources[1]);
  const Quotient& quotient = Quotients().at(std::string(iop->name));
  std::string row = e.Fresh("r"), col = e.Fresh("c");
  auto element = [&](const Tile& tile) { return Member(e, tile, "GetValue", {OffsetText(e, tile, row, col)}); };
  std::string made = std::string("b == 0 ? 0 : (b == -1 ? ") + quotient.by_minus_one + " : " + quotient.text + ")";
  e.Do("S",
       OverBox(row, col, t.box,
               {"const int64_t a = " + element(x) + ", b = " + element(y) + ";",
                Member(e, t, "SetValue", {OffsetText(e, t, row, col), made}) + ";"}),
       {Reads(x), Reads(y), Writes(t)});
}

void EmitScalarReduce(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]), s = e.TileOf(iop->sources[0]);
  std::string name(iop->name);
  bool by_row = IsByRow(iop);
  std::string line = e.Fresh("r"), each = e.Fresh("c"), sum = e.Fresh("sum");
  // results along `line`, summed along `each`
  auto offset = [&](const Tile& tile, const std::string& k) {
    return by_row ? OffsetText(e, tile, line, k) : OffsetText(e, tile, k, line);
  };
  const Box &to = t.box, &from = s.box;
  const Bound &begin = by_row ? to.row_begin : to.col_begin, &end = by_row ? to.row_end : to.col_end;
  const Bound &first = by_row ? from.row_begin : from.col_begin, &last = by_row ? from.row_end : from.col_end;
  std::string inside = line + " >= " + first.text + " && " + line + " < " + last.text;
  std::string held = e.Fresh("x");
  std::vector<std::string> lines =
      Looped(each, (by_row ? from.col_begin : from.row_begin).text, (by_row ? from.col_end : from.row_end).text,
             {"if (!(" + inside + ")) continue;",
              "const int64_t " + held + " = " + Member(e, s, "GetValue", {offset(s, each)}) + ";",
              sum + " = " + Joined(name, sum, held) + ";"});
  lines.insert(lines.begin(), "int64_t " + sum + " = " + ScalarIdentity(name) + ";");
  lines.push_back(Member(e, t, "SetValue", {offset(t, "0"), sum}) + ";");
  e.Do("S", Looped(line, begin.text, end.text, lines), {Reads(s), Writes(t)});
}

}  // namespace uir::codegen::ascend
