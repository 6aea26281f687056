// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/hazards.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "igraph/numbered.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Values of variables, and elements, that are looked at one by one; beyond, intervals decide. */
constexpr int64_t kMostValues = 4096, kMostElements = int64_t{1} << 22;

/*! \brief The greatest element of an access, counted from its first. */
int64_t Span(const Touch& t) { return (t.rows - 1) * t.row_stride + (t.cols - 1) * t.col_stride; }

/*! \brief Which elements from the first on an access names. */
std::vector<bool> ElementsOf(const Touch& t) {
  std::vector<bool> out(Span(t) + 1, false);
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) out[r * t.row_stride + c * t.col_stride] = true;
  }
  return out;
}

/*! \brief Whether every element has a name of its own. */
bool IsOneToOne(const Touch& t) {
  if (Span(t) >= kMostElements) return false;
  const std::vector<bool> elements = ElementsOf(t);
  return std::count(elements.begin(), elements.end(), true) == t.rows * t.cols;
}

/*! \brief After how many values of a variable an expression repeats itself; 0 where it does not. */
int64_t PeriodOf(const Affine& expr, const std::string& variable) {
  const NumberedAffine numbered(expr, [&](const std::string& name) { return name == variable ? 0 : 1; });
  const std::optional<Period> found = numbered.PeriodIn(0, INT64_MAX);
  return found && found->shift == 0 ? found->period : 0;
}

/*! \brief The same accesses by the same lanes, each of which names its elements alone. */
bool SameLanes(const Touch& a, const Touch& b) {
  if (!a.lanes || !b.lanes || *a.lanes != *b.lanes) return false;
  if (a.rows != b.rows || a.cols != b.cols || a.row_stride != b.row_stride || a.col_stride != b.col_stride)
    return false;
  if (!IsOneToOne(a)) return false;
  // all lanes with a copy of an element read it, one of them writes it
  const Fragment& f = *a.lanes;
  const bool copies = (f.replicated_r() && f.layout.lanes_r > 1) || (f.replicated_c() && f.layout.lanes_c > 1);
  return !copies || (a.write && b.write);
}

std::set<int> Ids(const std::vector<Touch>& touches) {
  std::set<int> out;
  for (const Touch& touch : touches) out.insert(touch.id);
  return out;
}

}  // namespace

Touch::Touch(const ISlice& slice, bool write, std::optional<Fragment> lanes)
    : pointer(slice->pointer->name),
      write(write),
      offset(slice->offset),
      rows(slice->rows),
      cols(slice->cols),
      row_stride(slice->rows == 1 ? 0 : slice->row_stride),
      col_stride(slice->cols == 1 ? 0 : slice->col_stride),
      lanes(lanes) {}

namespace {

/*! \brief For every loop the accesses that its iterations leave to the next. */
using Carried = std::map<const LoopNode*, std::vector<Touch>>;

/*! \brief Whether every access of `some` is in `all`. */
bool IsWithin(const Carried& some, const Carried& all) {
  return std::all_of(some.begin(), some.end(), [&](const auto& one) {
    auto other = all.find(one.first);
    if (other == all.end()) return one.second.empty();
    const std::set<int> a = Ids(one.second), b = Ids(other->second);
    return std::includes(b.begin(), b.end(), a.begin(), a.end());
  });
}

/*! \brief What is in either. */
Carried Joined(const Carried& a, const Carried& b) {
  Carried out = a;
  for (const auto& [loop, touches] : b) {
    const std::set<int> known = Ids(out[loop]);
    for (const Touch& touch : touches) {
      if (!known.count(touch.id)) out[loop].push_back(touch);
    }
  }
  return out;
}

}  // namespace

/*! \brief The unordered accesses at every place of a body, where its loops carry what is expected. */
class Hazards {
 public:
  Hazards(const Meetings& meetings, const Scope& scope, Carried carried)
      : scope_(scope), carried_(std::move(carried)), meets_(meetings.events_.size(), false) {
    for (size_t k = 0; k < meetings.events_.size(); ++k) meets_[k] = Step(meetings.events_[k]);
  }

  /*! \brief By event: whether lanes must meet there. */
  const std::vector<bool>& meets() const { return meets_; }
  /*! \brief Of every loop: all accesses in it, and those that are unordered at the end of its body. */
  const Carried& touched() const { return touched_; }
  const Carried& left() const { return left_; }

 private:
  using Event = Meetings::Event;

  bool Step(const Event& event);
  bool Meets(const Touch& touch) const;
  bool Overlap(const Touch& now, const Touch& before) const;
  void Note(Touch touch);
  void CloseSome();
  void Enter(const LoopNode* loop);
  void Leave(const LoopNode* loop);

  Scope scope_;
  Carried carried_, touched_, left_;
  std::vector<bool> meets_;
  std::vector<Touch> pending_, all_;
  /*! \brief What was unordered where only some warps went on. */
  std::vector<std::vector<Touch>> before_;
  std::vector<const LoopNode*> open_;
  int count_ = 0;
};

bool Hazards::Step(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kTouch: {
      const bool meets = Meets(event.touch);
      if (meets) pending_.clear();
      Note(event.touch);
      return meets;
    }
    case Event::Kind::kNote:
      Note(event.touch);
      return false;
    case Event::Kind::kAsk:
      return Meets(event.touch);
    case Event::Kind::kMet:
      pending_.clear();
      return false;
    case Event::Kind::kOpenSome:
      before_.push_back(pending_);
      return false;
    case Event::Kind::kCloseSome:
      CloseSome();
      return false;
    case Event::Kind::kEnter:
      Enter(event.loop);
      return false;
    case Event::Kind::kLeave:
      Leave(event.loop);
      return false;
  }
  return false;
}

bool Hazards::Overlap(const Touch& now, const Touch& before) const {
  // elements are counted from the first of an access, which of a reversed one is not the least
  const bool backwards = std::min({now.row_stride, now.col_stride, before.row_stride, before.col_stride}) < 0;
  if (backwards) return true;
  const Affine apart = now.offset - before.offset;
  const bool same_lanes = SameLanes(now, before);
  const int64_t span = Span(now), span_before = Span(before);
  std::vector<std::pair<ffi::String, Range>> variables;
  int64_t values = 1;
  Scope scope;
  for (const ffi::String& name : apart.Variables()) {
    auto own = before.free.find(name);
    Range range = own != before.free.end() ? own->second : scope_.Of(Affine::Var(name));
    scope.Bind(name, name, range);
    const int64_t period = PeriodOf(apart, name);
    if (period > 0) range.high = std::min(range.high, range.low + period - 1);
    values = std::min(values * std::min(range.high - range.low + 1, kMostValues + 1), kMostValues + 1);
    variables.emplace_back(name, range);
  }
  if (values > kMostValues || std::max(span, span_before) >= kMostElements) {
    const Range range = scope.Of(apart);
    return range.low <= span_before && range.high >= -span;
  }
  const std::vector<bool> elements = ElementsOf(now), elements_before = ElementsOf(before);
  auto meets = [&](int64_t distance) {
    if (distance == 0 && same_lanes) return false;
    for (int64_t i = std::max<int64_t>(0, -distance); i <= span && i + distance <= span_before; ++i) {
      if (elements[i] && elements_before[i + distance]) return true;
    }
    return false;
  };
  std::set<int64_t> seen;
  ffi::Map<ffi::String, int64_t> at;
  std::function<bool(size_t)> any = [&](size_t next) {
    if (next == variables.size()) {
      const int64_t distance = apart.Evaluate(at);
      return seen.insert(distance).second && meets(distance);
    }
    const auto& [name, range] = variables[next];
    for (int64_t value = range.low; value <= range.high; ++value) {
      at.Set(name, value);
      if (any(next + 1)) return true;
    }
    return false;
  };
  return any(0);
}

bool Hazards::Meets(const Touch& touch) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const Touch& other) {
    return other.pointer == touch.pointer && (other.write || touch.write) && Overlap(touch, other);
  });
}

void Hazards::Note(Touch touch) {
  touch.id = count_++;
  touch.loops = open_;
  if (!open_.empty()) all_.push_back(touch);
  pending_.push_back(std::move(touch));
}

void Hazards::CloseSome() {
  const std::set<int> known = Ids(pending_);
  for (const Touch& touch : before_.back()) {
    if (!known.count(touch.id)) pending_.push_back(touch);
  }
  before_.pop_back();
}

void Hazards::Enter(const LoopNode* loop) {
  open_.push_back(loop);
  scope_.Bind(std::string(loop->var), std::string(loop->var), {0, std::max<int64_t>(loop->extent - 1, 0)});
  auto carried = carried_.find(loop);
  if (carried == carried_.end() || loop->extent < 2) return;
  for (Touch touch : carried->second) {
    const std::string distance = std::string(loop->var) + " before";
    touch.offset = Substitute(touch.offset, {{loop->var, Affine::Var(loop->var) - Affine::Var(distance)}});
    touch.free[distance] = {1, loop->extent - 1};
    touch.carried = loop;
    pending_.push_back(touch);
  }
}

void Hazards::Leave(const LoopNode* loop) {
  open_.pop_back();
  // what came from an iteration before is among what this one left, which from now on is of any iteration
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(), [&](const Touch& t) { return t.carried == loop; }),
                 pending_.end());
  const std::string any = std::string(loop->var) + " after";
  auto leave = [&](std::vector<Touch>* touches, std::vector<Touch>* known) {
    for (Touch& touch : *touches) {
      const bool inside = std::find(touch.loops.begin(), touch.loops.end(), loop) != touch.loops.end();
      if (!inside || touch.carried != nullptr) continue;
      known->push_back(touch);
      touch.offset = Substitute(touch.offset, {{loop->var, Affine::Var(any)}});
      touch.free[any] = {0, std::max<int64_t>(loop->extent - 1, 0)};
    }
  };
  leave(&pending_, &left_[loop]);
  leave(&all_, &touched_[loop]);
  if (open_.empty()) all_.clear();
}

std::vector<bool> Meetings::Plan(const Scope& scope) const {
  constexpr int kTries = 4;
  const Hazards first(*this, scope, {});
  if (IsWithin(first.touched(), {})) return first.meets();
  // all accesses of a loop may be unordered where an iteration begins; what its iterations leave then is less, and so
  // on
  const Hazards sure(*this, scope, first.touched());
  Carried expected = sure.left();
  for (int n = 0; n < kTries; ++n) {
    const Hazards run(*this, scope, expected);
    if (IsWithin(run.left(), expected)) return run.meets();
    expected = Joined(expected, run.left());
  }
  return sure.meets();
}

}  // namespace uir::codegen::cuda
