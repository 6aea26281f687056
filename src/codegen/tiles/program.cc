// SPDX-License-Identifier: Apache-2.0
// Building elementwise programs.
#include "codegen/tiles/program.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <utility>

#include "codegen/tiles/steps.h"

namespace uir::codegen::tiles {

Value Program::Append(Step step) {
  // constants are made once
  if (IsConstant(steps_, step)) {
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (steps_[k].Same(step)) return {static_cast<int>(k)};
    }
  }
  steps_.push_back(std::move(step));
  return {static_cast<int>(steps_.size()) - 1};
}

Value Program::Input(int operand, const std::string& dtype) {
  Step step;
  step.form = Step::Form::kInput;
  step.dtype = dtype;
  step.operand = operand;
  return Append(step);
}

Value Program::View(Value x, const std::string& dtype) {
  if (DtypeOf(x) == dtype) return x;
  Step step;
  step.form = Step::Form::kView;
  step.dtype = dtype;
  step.args = {x.id};
  const Step& from = steps_[x.id];
  // bytes of an element of the iOp here, and of a stored element there
  int64_t own = ElementBytes(from.dtype) * from.per, wanted = ElementBytes(dtype) * from.pack;
  step.per = static_cast<int>(std::max<int64_t>(own / wanted, 1));
  step.pack = static_cast<int>(std::max<int64_t>(wanted / own, 1));
  return Append(step);
}

Value Program::Filled(const std::string& api, const std::string& dtype, const std::string& literal, int per) {
  Step step;
  step.form = Step::Form::kFill;
  step.api = api;
  step.dtype = dtype;
  step.literal = literal;
  step.per = per;
  return Append(step);
}

Value Program::Fill(const std::string& dtype, const std::string& literal, int per) {
  return Filled("Duplicate", dtype, literal, per);
}

Value Program::Index(int per) {
  Step step;
  step.form = Step::Form::kIndex;
  step.dtype = "int32";
  step.per = per;
  return Append(step);
}

Value Program::Gather(Value words, Value offsets, int64_t base) {
  Step step;
  step.form = Step::Form::kGather;
  step.api = "Gather";
  step.dtype = DtypeOf(words);
  step.args = {words.id, offsets.id};
  step.literal = std::to_string(base);
  step.per = steps_[offsets.id].per;
  return Append(step);
}

Step Program::On(Value x, Step::Form form, const std::string& api) const {
  Step step;
  step.form = form;
  step.api = api;
  step.dtype = DtypeOf(x);
  step.args = {x.id};
  step.per = steps_[x.id].per;
  step.pack = steps_[x.id].pack;
  return step;
}

Value Program::Apply(const std::string& api, Value x) { return Append(On(x, Step::Form::kPlain, api)); }

Value Program::Apply(const std::string& api, Value x, Value y) {
  Step step = On(x, Step::Form::kPlain, api);
  step.args.push_back(y.id);
  TVM_FFI_CHECK(DtypeOf(y) == step.dtype && steps_[y.id].per == step.per, InternalError)
      << api << " of " << step.dtype << " and " << DtypeOf(y);
  return Append(step);
}

Value Program::Scalar(const std::string& api, Value x, double number) {
  Step step = On(x, Step::Form::kScalar, api);
  step.literal = ElementLiteral(number, ElementTypeOf(step.dtype));
  return Append(step);
}

Value Program::ScalarInt(const std::string& api, Value x, int64_t number) {
  Step step = On(x, Step::Form::kScalar, api);
  step.literal = ElementIntLiteral(number, ElementTypeOf(step.dtype));
  return Append(step);
}

Value Program::Cast(Value x, const std::string& dtype, const std::string& mode) {
  Step step;
  step.form = Step::Form::kCast;
  step.api = "Cast";
  step.dtype = dtype;
  step.args = {x.id};
  step.mode = mode;
  return Append(step);
}

Value Program::Compare(const std::string& mode, Value x, Value y) {
  Step step;
  step.form = Step::Form::kCompare;
  step.api = "Compare";
  step.dtype = "bits";
  step.args = {x.id, y.id};
  step.per = steps_[x.id].per;
  step.mode = mode;
  return Append(step);
}

Value Program::Compare(const std::string& mode, Value x, double number) {
  Step step;
  step.form = Step::Form::kCompare;
  step.api = "CompareScalar";
  step.dtype = "bits";
  step.args = {x.id};
  step.mode = mode;
  step.literal = ElementLiteral(number, ElementTypeOf(DtypeOf(x)));
  return Append(step);
}

Value Program::Select(Value bits, Value x, Value y) {
  // the function knows floats only, but moves bits
  std::string own = DtypeOf(x), seen = ElementBytes(own) == 2 ? "fp16" : "fp32";
  Step step;
  step.form = Step::Form::kSelect;
  step.api = "Select";
  step.dtype = seen;
  step.args = {bits.id, View(x, seen).id, View(y, seen).id};
  step.per = steps_[step.args[1]].per;
  step.mode = "VSEL_TENSOR_TENSOR_MODE";
  return View(Append(step), own);
}

Value Program::Select(Value bits, Value x, double number) {
  Step step;
  step.form = Step::Form::kSelect;
  step.api = "Select";
  step.dtype = DtypeOf(x);
  step.args = {bits.id, x.id};
  step.literal = ElementLiteral(number, ElementTypeOf(step.dtype));
  step.mode = "VSEL_TENSOR_SCALAR_MODE";
  return Append(step);
}

Value Program::Copy(Value x) {
  std::string own = DtypeOf(x);
  Value seen = View(x, ElementBytes(own) >= 4 ? "int32" : "int16");
  return View(ScalarInt("Adds", seen, 0), own);
}

Value Program::Bits(const std::string& api, Value x, Value y) {
  std::string own = DtypeOf(x);
  return View(Apply(api, View(x, "int16"), View(y, "int16")), own);
}

Value Program::BitNot(Value x) {
  std::string own = DtypeOf(x);
  return View(Apply("Not", View(x, "int16")), own);
}

// 2^n is made of its exponent's bits, in two factors since n may exceed what one float has
Value Program::TimesPowerOfTwo(Value x, Value n) {
  Value whole = Cast(n, "int32", "RINT"), half = Shr(whole, 1), rest = Sub(whole, half);
  auto power = [this](Value k) { return View(Shl(ScalarInt("Adds", k, 127), 23), "fp32"); };
  return Mul(Mul(x, power(half)), power(rest));
}

void Program::SplitFloat(Value x, Value* e, Value* m) {
  Value bits = View(x, "int32");
  Value biased = Shr(bits, 23);
  *e = Cast(biased, "fp32", "RINT");
  Value one = Fill("int32", ElementIntLiteral(127 << 23, "int32_t"));
  *m = View(Apply("Add", Sub(bits, Shl(biased, 23)), one), "fp32");
}

bool Program::Looks() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.form == Step::Form::kPeak; });
}

Value Program::Peak(Value x) {
  Step step;
  step.form = Step::Form::kPeak;
  step.dtype = "fp32";
  step.args = {Shr(View(Apply("Abs", x), "int32"), 23).id};
  return Append(step);
}

Value Program::FarRest(const std::string& mode, Value x, Value rest, Value peak) {
  Step step;
  step.form = Step::Form::kFarRest;
  step.dtype = "fp32";
  step.args = {x.id, rest.id, peak.id};
  step.mode = mode;
  return Append(step);
}

Value Program::Polynomial(Value x, const std::vector<double>& c) {
  TVM_FFI_CHECK(c.size() >= 2, InternalError) << "a polynomial of two terms at least";
  Value sum = Muls(x, c.back());
  for (size_t k = c.size() - 2; k > 0; --k) sum = Mul(Adds(sum, c[k]), x);
  return Adds(sum, c[0]);
}

}  // namespace uir::codegen::tiles
