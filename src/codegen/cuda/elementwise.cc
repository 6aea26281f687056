// SPDX-License-Identifier: Apache-2.0
// unary, binary, compare, select, cast and iota: one expression for every register of a lane.
//
// Registers whose element lies outside the valid box are computed like the others: nobody reads them.
#include <tvm/ffi/any.h>

#include <functional>
#include <utility>
#include <vector>

#include "codegen/attributes.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/functions.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief From the sources' registers (stored values) the expression of the target's (stored). */
using Formula = std::function<Expression(const std::vector<std::string>& values)>;

class ElementwiseStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  std::vector<Operand> sources;
  Operand target;
  Formula formula;
};

void ElementwiseStep::Print(Emitter& e) const {
  std::vector<Regs> x;
  for (const Operand& source : sources) x.push_back(e.Source(source));
  Regs y = e.Target(target);
  std::vector<const Regs*> operands;
  for (const Regs& one : x) operands.push_back(&one);
  e.Each(y, operands, [&](const Cell& at) {
    std::vector<std::string> values;
    for (const Regs& one : x) values.push_back(one[at]);
    Expression made = formula(values);
    for (const std::string& key : made.helpers) e.needs.Helper(key);
    e.Assign(y, at, made.text);
  });
  e.Commit(target, y);
}

StepPtr PlanElementwise(StepPlanner& p, const IOp& iop, Formula formula) {
  auto step = std::make_unique<ElementwiseStep>(iop);
  const Layout layout = p.plan.WorkLayout(iop);
  for (const ISlice& source : iop->sources) step->sources.push_back(p.Source(source, layout));
  step->target = p.Target(iop->targets[0], layout);
  p.Commit(&step->target);
  step->formula = std::move(formula);
  return step;
}

/*! \brief Numbers that follow each other along rows and columns. */
class IotaStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  Operand target;
  int64_t row_step = 0, col_step = 0;
};

void IotaStep::Print(Emitter& e) const {
  Regs y = e.Target(target);
  const Fragment& f = y.fragment;
  // row and col are two more variables of the affine expression; no loop has such names
  Affine value = BaseOf(iop) + Affine::Var("#row").Scale(row_step) + Affine::Var("#col").Scale(col_step);
  Scope scope = e.scope;
  scope.Bind("#row", "row", {0, f.layout.step_r() * f.blocks_r() - 1});
  scope.Bind("#col", "col", {0, f.layout.step_c() * f.blocks_c() - 1});
  std::string number = scope.Text(value), from = scope.Wide(value) ? "int64" : "int32";
  Expression made = CastExpression(from, std::string(iop->dtype), "", number);
  for (const std::string& key : made.helpers) e.needs.Helper(key);
  e.Each(y, {}, [&](const Cell& at) { e.Assign(y, at, made.text); }, {row_step != 0, col_step != 0});
  e.Commit(target, y);
}

/*! \brief What a computed value (`made.dtype`) is stored as; says which conversions it takes from `from`. */
Expression Rounded(Expression made, const ScalarType& from) {
  made.text = Narrow(TypeOf(made.dtype), made.text);
  for (const std::string& key : ConversionHelpers(from)) made.helpers.push_back(key);
  return made;
}

}  // namespace

StepPtr PlanUnary(StepPlanner& p, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  const auto params = AttrOr(iop->attrs, "params", ffi::Array<ffi::Any>());
  std::string name(iop->name);
  return PlanElementwise(p, iop, [=, &type](const std::vector<std::string>& v) {
    // a copy is not rounded, so it need not be widened either
    if (name == "copy") return Expression{v[0], {}, type.name};
    return Rounded(UnaryExpression(name, type.name, Widen(type, v[0]), params), type);
  });
}

StepPtr PlanBinary(StepPlanner& p, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  return PlanElementwise(p, iop, [=, &type](const std::vector<std::string>& v) {
    return Rounded(BinaryExpression(std::string(iop->name), type.name, Widen(type, v[0]), Widen(type, v[1])), type);
  });
}

StepPtr PlanCompare(StepPlanner& p, const IOp& iop) {
  const ScalarType& type = TypeOf(std::string(iop->dtype));
  return PlanElementwise(p, iop, [=, &type](const std::vector<std::string>& v) {
    return Rounded(CompareExpression(std::string(iop->name), type.name, Widen(type, v[0]), Widen(type, v[1])), type);
  });
}

StepPtr PlanSelect(StepPlanner& p, const IOp& iop) {
  return PlanElementwise(p, iop, [=](const std::vector<std::string>& v) {
    return Expression{v[0] + " ? " + v[1] + " : " + v[2], {}, std::string(iop->dtype)};
  });
}

StepPtr PlanCast(StepPlanner& p, const IOp& iop) {
  const std::string round = RoundOf(iop);
  return PlanElementwise(p, iop, [=](const std::vector<std::string>& v) {
    return CastExpression(std::string(iop->name), std::string(iop->dtype), round, v[0]);
  });
}

StepPtr PlanIota(StepPlanner& p, const IOp& iop) {
  auto step = std::make_unique<IotaStep>(iop);
  step->target = p.Target(iop->targets[0], p.plan.WorkLayout(iop));
  const Fragment& f = step->target.fragment;
  if (!f.replicated_r()) step->row_step = AttrOr<int64_t>(iop->attrs, "row_step", 0);
  if (!f.replicated_c()) step->col_step = AttrOr<int64_t>(iop->attrs, "col_step", 1);
  p.Commit(&step->target);
  return step;
}

}  // namespace uir::codegen::cuda
