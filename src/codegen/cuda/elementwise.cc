// SPDX-License-Identifier: Apache-2.0
// unary, binary, compare, select, cast and iota: one expression for every register of a lane.
//
// Registers whose element lies outside the valid box are computed like the others: nobody reads them.
#include <tvm/ffi/any.h>

#include "codegen/attributes.h"
#include "codegen/cuda/functions.h"
#include "codegen/cuda/ops.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief From the sources' registers (stored values) the expression of the target's (stored). */
using Formula = std::function<Expression(const std::vector<std::string>& values)>;

void Elementwise(Emitter& e, const IOp& iop, const Formula& formula) {
  Layout layout = e.plan.WorkLayout(iop);
  std::vector<Regs> sources;
  for (const ISlice& source : iop->sources) sources.push_back(e.Source(source, layout));
  Regs target = e.Target(iop->targets[0], layout);
  std::vector<const Regs*> operands;
  for (const Regs& source : sources) operands.push_back(&source);
  e.Each(target, operands, [&](const Cell& at) {
    std::vector<std::string> values;
    for (const Regs& source : sources) values.push_back(source[at]);
    Expression made = formula(values);
    for (const std::string& key : made.helpers) e.needs.Helper(key);
    e.Assign(target, at, made.text);
  });
  e.Commit(iop->targets[0], target);
}

/*! \brief What a computed value (`made.dtype`) is stored as; says which conversions it takes from `from`. */
Expression Rounded(Expression made, const ScalarType& from) {
  made.text = Narrow(TypeOf(made.dtype), made.text);
  for (const std::string& key : ConversionHelpers(from)) made.helpers.push_back(key);
  return made;
}

}  // namespace

void EmitUnary(Emitter& e, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  const auto params = AttrOr(iop->attrs, "params", ffi::Array<ffi::Any>());
  std::string name(iop->name);
  Elementwise(e, iop, [&](const std::vector<std::string>& v) {
    // a copy is not rounded, so it need not be widened either
    if (name == "copy") return Expression{v[0], {}, type.name};
    return Rounded(UnaryExpression(name, type.name, Widen(type, v[0]), params), type);
  });
}

void EmitBinary(Emitter& e, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  Elementwise(e, iop, [&](const std::vector<std::string>& v) {
    return Rounded(BinaryExpression(std::string(iop->name), type.name, Widen(type, v[0]), Widen(type, v[1])), type);
  });
}

void EmitCompare(Emitter& e, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  Elementwise(e, iop, [&](const std::vector<std::string>& v) {
    return Rounded(CompareExpression(std::string(iop->name), type.name, Widen(type, v[0]), Widen(type, v[1])), type);
  });
}

void EmitSelect(Emitter& e, const IOp& iop) {
  Elementwise(e, iop, [&](const std::vector<std::string>& v) {
    return Expression{v[0] + " ? " + v[1] + " : " + v[2], {}, std::string(iop->dtype)};
  });
}

void EmitCast(Emitter& e, const IOp& iop) {
  const std::string round = RoundOf(iop);
  Elementwise(e, iop, [&](const std::vector<std::string>& v) {
    return CastExpression(std::string(iop->name), std::string(iop->dtype), round, v[0]);
  });
}

void EmitIota(Emitter& e, const IOp& iop) {
  const Affine base = BaseOf(iop);
  int64_t row_step = AttrOr<int64_t>(iop->attrs, "row_step", 0), col_step = AttrOr<int64_t>(iop->attrs, "col_step", 1);
  Regs target = e.Target(iop->targets[0], e.plan.WorkLayout(iop));
  const Fragment& f = target.fragment;
  if (f.replicated_r()) row_step = 0;
  if (f.replicated_c()) col_step = 0;

  // row and col are two more variables of the affine expression; no loop has such names
  Affine value = base + Affine::Var("#row").Scale(row_step) + Affine::Var("#col").Scale(col_step);
  Scope scope = e.scope;
  scope.Bind("#row", "row", {0, f.layout.step_r() * f.blocks_r() - 1});
  scope.Bind("#col", "col", {0, f.layout.step_c() * f.blocks_c() - 1});
  std::string number = scope.Text(value), from = scope.Wide(value) ? "int64" : "int32";
  Expression made = CastExpression(from, std::string(iop->dtype), "", number);
  for (const std::string& key : made.helpers) e.needs.Helper(key);
  e.Each(target, {}, [&](const Cell& at) { e.Assign(target, at, made.text); }, {row_step != 0, col_step != 0});
  e.Commit(iop->targets[0], target);
}

}  // namespace uir::codegen::cuda
