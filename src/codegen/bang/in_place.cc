// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/in_place.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "codegen/bang/program.h"
#include "codegen/tiles/steps.h"

namespace uir::codegen::bang {

InPlace InPlaceOf(const tiles::Step& step) {
  static const std::set<std::string> first = {"band", "bor", "bxor", "fusion"};
  static const std::set<std::string> none = {"int2float", "half2float", "bfloat162float", "int162float", "int82float"};
  return first.count(step.api) ? InPlace::kFirst : none.count(step.api) ? InPlace::kNone : InPlace::kAny;
}

bool Commutes(const tiles::Step& step) {
  return InPlaceOf(step) == InPlace::kFirst && step.api != "fusion" && step.args.size() == 2;
}

Value Program::Settle(Value result, const std::set<int>& shared) {
  auto root = [this](int id) { return tiles::RootOf(steps_, id); };
  auto lies_there = [&](int id) {
    const Step& step = steps_[root(id)];
    return step.form == Step::Form::kInput && shared.count(step.operand) > 0;
  };
  if (steps_[root(result.id)].form == Step::Form::kInput) return Settle(Copy(result), shared);
  Step& step = steps_[root(result.id)];
  InPlace allowed = InPlaceOf(step);
  if (Commutes(step) && lies_there(step.args[1])) std::swap(step.args[0], step.args[1]);
  // the printer fuses no operands that lie there (Fuse)
  auto begin = step.args.begin() + (allowed == InPlace::kFirst && !step.args.empty() ? 1 : 0);
  bool breaks = allowed != InPlace::kAny && step.api != "fusion" && std::any_of(begin, step.args.end(), lies_there);
  return breaks ? Copy(result) : result;
}

}  // namespace uir::codegen::bang
