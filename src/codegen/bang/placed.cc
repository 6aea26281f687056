// SPDX-License-Identifier: Apache-2.0
// Slots of a work buffer by when their values are last read.
#include "codegen/bang/placed.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "codegen/bang/in_place.h"

namespace uir::codegen::bang {
namespace {

/*! \brief Whether a function has a form that repeats its second operand. */
bool Cycles(const Step& step) {
  static const std::set<std::string> names = {"add", "sub", "mul"};
  return step.form == Step::Form::kPlain && !step.column && step.per == 1 && step.pack == 1 && names.count(step.api);
}

}  // namespace

Placed::Placed(const tiles::Program& program, Value result, bool cycles)
    : steps_(program.steps()), result_(Root(result.id)) {
  int count = static_cast<int>(steps_.size());
  used_ = tiles::NeededFor(steps_, result_);
  last_ = tiles::LastReads(steps_, used_);
  short_.assign(count, false);
  slot_.assign(count, -1);
  if (cycles) FindShort();
  for (int k = 0; k < count; ++k) {
    if (used_[k] && Computes(steps_[k]) && steps_[k].column) slot_[k] = columns_++;
    if (short_[k]) slot_[k] = segments_++;
  }
  // constants are filled once and keep their slots
  for (int k = 0; k < count; ++k) {
    if (used_[k] && !short_[k] && IsConstant(k) && !steps_[k].column && k != result_) slot_[k] = Own();
  }
  for (int k = 0; k < count; ++k) {
    if (used_[k] && Computes(steps_[k]) && !IsConstant(k) && !steps_[k].column) PlaceStep(k);
  }
}

void Placed::FindShort() {
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    short_[k] = used_[k] && static_cast<int>(k) != result_ && step.form == Step::Form::kFill && step.per == 1 &&
                step.api == "Duplicate" && (step.dtype == "fp32" || step.dtype == "fp16");
  }
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    if (!used_[k]) continue;
    for (size_t a = 0; a < step.args.size(); ++a) {
      bool repeats = a == 1 && Cycles(step) && step.args[0] != step.args[1] && !IsConstant(Root(step.args[0]));
      if (!repeats) short_[step.args[a]] = false;
    }
  }
}

void Placed::PlaceStep(int id) {
  Step& step = steps_[id];
  std::set<int> dying, given, kept;
  auto gives = [&](int arg) {
    int root = Root(arg);
    return !steps_[root].column && !IsConstant(root) && last_[root] == id && slot_[root] >= 0;
  };
  for (int arg : step.args) {
    if (gives(arg)) dying.insert(slot_[Root(arg)]);
  }
  // a conversion may change the width: it gets a slot of its own
  InPlace allowed = step.form == Step::Form::kCast ? InPlace::kNone : InPlaceOf(step);
  if (allowed == InPlace::kAny) given = dying;
  if (allowed == InPlace::kFirst && !step.args.empty()) {
    // those of the result are in order (Settle)
    if (id != result_ && Commutes(step) && !gives(step.args[0]) && gives(step.args[1]))
      std::swap(step.args[0], step.args[1]);
    int first = Root(step.args[0]);
    bool again = std::any_of(step.args.begin() + 1, step.args.end(), [&](int arg) { return Root(arg) == first; });
    if (gives(first) && !again) given = {slot_[first]};
  }
  std::set_difference(dying.begin(), dying.end(), given.begin(), given.end(), std::inserter(kept, kept.end()));
  Free(given);
  if (id != result_) slot_[id] = Own();
  Free(kept);
}

int Placed::Own() {
  if (free_.empty()) return slots_++;
  int taken = free_.back();
  free_.pop_back();
  return taken;
}

}  // namespace uir::codegen::bang
