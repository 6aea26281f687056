// SPDX-License-Identifier: Apache-2.0
// Dead steps, copies where a step needs consecutive operands, and who shares a buffer with whom.
#include "codegen/ascend/vector_steps.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/ascend/api.h"
#include "codegen/ascend/scalar.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Whether a step can only be printed over consecutive elements. */
bool CountOnly(const Step& step) {
  return step.form == Step::Form::kCompare || step.form == Step::Form::kSelect || !HasForm(step.api, "repeat");
}

/*! \brief Bits that an element of the iOp takes in a step's result. */
int64_t StepBits(const Step& step) {
  return step.dtype == "bits" ? step.per : BytesOf(step.dtype) * 8 * step.per / step.pack;
}

/*! \brief Gives steps their buffers, in the order in which they are computed. */
class Placer {
 public:
  explicit Placer(const Ready& ready) : ready_(ready), steps_(ready.steps()) {
    int count = static_cast<int>(steps_.size());
    last_ = tiles::LastReads(steps_, std::vector<bool>(count, true));
    kept_.assign(count, false);
    out_.of.assign(count, -1);
    for (int k = 0; k < count; ++k) {
      if (!Computes(steps_[k])) continue;
      for (int arg : steps_[k].args) {
        int root = ready_.RootOf(arg);
        // constants that chunks read keep their buffers
        if (ready_.IsPrepared(root) && !ready_.IsPrepared(k)) kept_[root] = true;
      }
    }
    for (int k = 0; k < count; ++k) {
      if (ready_.IsPrepared(k)) Place(k);
    }
    for (int k = 0; k < count; ++k) {
      if (Computes(steps_[k]) && !ready_.IsPrepared(k)) Place(k);
    }
  }

  Buffers Take() { return std::move(out_); }

 private:
  int Own(int64_t bits, const std::string& dtype) {
    auto at = free_.find(bits);
    if (at != free_.end()) {
      int buffer = at->second;
      free_.erase(at);
      return buffer;
    }
    out_.bits.push_back(bits);
    out_.dtypes.push_back(dtype == "bits" ? "uint8" : dtype);
    return static_cast<int>(out_.bits.size()) - 1;
  }

  void Place(int k) {
    const Step& step = steps_[k];
    int result = ready_.RootOf(ready_.result());
    std::vector<int> dying;
    for (int arg : step.args) {
      int root = ready_.RootOf(arg);
      if (last_[root] == k && out_.of[root] >= 0 && !kept_[root] &&
          std::find(dying.begin(), dying.end(), root) == dying.end()) {
        dying.push_back(root);
      }
    }
    // in place where source and target are the same bytes; a mask never is
    bool reuses = step.form == Step::Form::kPlain || step.form == Step::Form::kScalar ||
                  step.form == Step::Form::kSelect ||
                  (step.form == Step::Form::kCast && StepBits(step) == StepBits(steps_[ready_.RootOf(step.args[0])]));
    int taken = -1;
    if (step.form == Step::Form::kFarRest) {
      // most elements stay as they are
      taken = ready_.RootOf(step.args[1]);
      TVM_FFI_CHECK(k != result && std::find(dying.begin(), dying.end(), taken) != dying.end(), InternalError)
          << "what is put right in place is read elsewhere";
    }
    if (k != result && reuses) {
      for (int root : dying) {
        if (steps_[root].dtype != "bits" && StepBits(steps_[root]) == StepBits(step)) taken = root;
      }
    }
    if (taken >= 0) {
      out_.of[k] = out_.of[taken];
    } else if (k != result) {
      out_.of[k] = Own(StepBits(step), step.dtype);
    }
    for (int root : dying) {
      if (root != taken) free_.emplace(StepBits(steps_[root]), out_.of[root]);
    }
  }

  const Ready& ready_;
  const std::vector<Step>& steps_;
  std::vector<int> last_;
  std::vector<bool> kept_;
  std::multimap<int64_t, int> free_;
  Buffers out_;
};

}  // namespace

Ready::Ready(const Program& program, Value result, bool apart, bool whole) : result_(result.id) {
  const std::vector<Step>& given = program.steps();
  const std::vector<bool> used = tiles::NeededFor(given, result.id);
  std::vector<int> now(given.size(), -1);
  std::map<int, int> copies;
  std::vector<Step>& steps = steps_;
  auto append = [&steps](Step step) {
    steps.push_back(std::move(step));
    return static_cast<int>(steps.size()) - 1;
  };
  // the same value in a buffer of its own: a copy of the bits
  auto copied = [&](int id) {
    auto known = copies.find(id);
    if (known != copies.end()) return known->second;
    Program p;
    Value copy = p.Copy(p.Input(0, steps[id].dtype));
    std::vector<int> at;
    for (const Step& step : p.steps()) {
      Step own = step;
      if (step.form == Step::Form::kInput) {
        at.push_back(id);
        continue;
      }
      for (int& arg : own.args) arg = at[arg];
      at.push_back(append(own));
    }
    return copies[id] = at[copy.id];
  };
  for (size_t k = 0; k < given.size(); ++k) {
    if (!used[k]) continue;
    Step step = given[k];
    for (int& arg : step.args) arg = now[arg];
    bool compares = step.form == Step::Form::kCompare;
    if ((apart && Computes(step) && CountOnly(step)) || (compares && !whole)) {
      for (int& arg : step.args) {
        if (steps[RootOf(arg)].form != Step::Form::kInput) continue;
        // views of a copy rather than copies of a view
        const Step like = steps[arg];
        arg = ViewOf(copied(RootOf(arg)), like);
      }
    }
    now[k] = append(step);
  }
  result_ = now[result.id];
  const Step& last = steps[RootOf(result_)];
  if (last.form == Step::Form::kInput || (apart && CountOnly(last))) {
    copies.clear();
    result_ = copied(result_);
  }
}

int Ready::ViewOf(int id, const Step& like) {
  if (steps_[id].dtype == like.dtype) return id;
  Step view = like;
  view.form = Step::Form::kView;
  view.args = {id};
  steps_.push_back(view);
  return static_cast<int>(steps_.size()) - 1;
}

Buffers PlaceSteps(const Ready& ready) { return Placer(ready).Take(); }

}  // namespace uir::codegen::ascend
