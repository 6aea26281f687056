// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/step_planner.h"

#include <algorithm>
#include <map>

#include "codegen/attributes.h"
#include "codegen/cuda/conversion.h"
#include "codegen/cuda/scalar.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Multiples of which bounds are that cut nothing off. */
constexpr int64_t kUnbounded = 16;

/*! \brief The name under which the scratch of iOps is told apart from pointers. */
constexpr const char* kTemporary = "temporary scratch";
/*! \brief The same for what is set up before the body. */
constexpr const char* kStart = "start of the kernel";

Touch TouchOf(const char* what, int64_t bytes, bool write) {
  Touch touch;
  touch.pointer = what;
  touch.write = write;
  touch.cols = bytes;
  return touch;
}

}  // namespace

StepPlanner::StepPlanner(const Plan& plan, const std::vector<Use>& uses) : plan(plan), uses(uses), scope(plan.scope()) {
  std::map<std::string, int> writers, readers;
  for (const Use& use : uses) ++(use.write ? writers : readers)[use.pointer()];
  for (const std::string& name : PointersOf(uses)) {
    const Home::Kind kind = plan.HomeOf(name).kind;
    // lanes meet in memory that some of them write and others read, or that two iOps write
    const bool meets = writers[name] > 1 || (writers[name] > 0 && readers[name] > 0);
    const bool shared = kind == Home::Kind::kSram || kind == Home::Kind::kScratch;
    if (shared || (kind == Home::Kind::kDram && meets)) tracked_.insert(name);
  }
}

Operand StepPlanner::Source(const ISlice& slice, const Layout& layout, const MoveHint& hint) {
  Operand out = Target(slice, layout);
  out.spares = false;
  if (out.way == Operand::Way::kConverted) {
    out.conversion = Convert(out.fragment, plan.HomeOf(slice).fragment, std::string(slice->pointer->dtype));
  } else if (out.way == Operand::Way::kMoved) {
    out.transfer = Load(slice, out.fragment, hint);
  }
  return out;
}

Operand StepPlanner::Target(const ISlice& slice, const Layout& layout) {
  const Home& home = plan.HomeOf(slice);
  Operand out;
  out.slice = slice;
  out.fragment = Fragment(layout, slice->rows, slice->cols);
  if (!home.registers()) {
    out.way = Operand::Way::kMoved;
    return out;
  }
  out.spares = plan.SparesOutside(slice);
  if (SameHolding(home.fragment, out.fragment)) {
    out.fragment = home.fragment;
  } else {
    out.way = Operand::Way::kConverted;
  }
  return out;
}

void StepPlanner::Commit(Operand* target, const MoveHint& hint) {
  const ISlice& slice = target->slice;
  if (target->way == Operand::Way::kMoved) {
    target->transfer = Store(slice, target->fragment, hint);
  } else if (target->way == Operand::Way::kConverted) {
    target->conversion = Convert(plan.HomeOf(slice).fragment, target->fragment, std::string(slice->pointer->dtype));
  }
}

Transfer StepPlanner::Load(const ISlice& slice, const Fragment& fragment, const MoveHint& hint) {
  return Between(slice, fragment, true, hint);
}

Transfer StepPlanner::Store(const ISlice& slice, const Fragment& fragment, const MoveHint& hint) {
  return Between(slice, fragment, false, hint);
}

Transfer StepPlanner::Between(const ISlice& slice, const Fragment& fragment, bool load, const MoveHint& hint) {
  Transfer out;
  out.slice = slice;
  out.hint = hint;
  Access access = plan.MoveOf(slice, scope, hint.align), inner = access;
  inner.row_bounds = inner.col_bounds = kUnbounded;
  const Layout best = ChooseLayout({inner}, {});
  const Fragment lines(best, fragment.rows, fragment.cols);
  const std::string dtype(slice->pointer->dtype);
  if (CostOf(inner, best) + ConversionCost(lines) < CostOf(inner, fragment.layout)) {
    // lanes that lie apart in memory: go through a layout in which they are neighbours
    out.between = lines;
    if (!load) out.conversion = Convert(lines, fragment, dtype);
  }
  const Fragment& moved = out.between ? *out.between : fragment;
  Bounds bounds = BoundsOf(slice);
  if (hint.within) {
    const Bounds others = BoundsOf(*hint.within);
    bounds.rows = bounds.rows || others.rows;
    bounds.cols = bounds.cols || others.cols;
    const Access other = AccessOf(*hint.within, scope);
    access.row_bounds = std::min(access.row_bounds, other.row_bounds);
    access.col_bounds = std::min(access.col_bounds, other.col_bounds);
  }
  out.meets = Touches(slice, !load, moved);
  out.exact = WidthOf(access, moved.layout);
  out.wide = WidthOf(inner, moved.layout);
  out.split = out.wide.elements > out.exact.elements && (out.wide.along_rows ? bounds.rows : bounds.cols);
  if (out.between && load) out.conversion = Convert(fragment, lines, dtype);
  return out;
}

Conversion StepPlanner::Convert(const Fragment& to, const Fragment& from, const std::string& dtype) {
  Conversion out = ConversionOf(to, from, TypeOf(dtype).bytes);
  if (out.way != Conversion::Way::kScratch) return out;
  const int64_t bytes = out.elements * TypeOf(dtype).bytes;
  out.written = WritesTemporary(bytes);
  out.read = ReadsTemporary(bytes);
  return out;
}

MeetingPlace StepPlanner::Touches(const ISlice& slice, bool write, const std::optional<Fragment>& lanes) {
  if (!tracked_.count(std::string(slice->pointer->name))) return kNowhere;
  // what lies behind the greatest end of the valid box is not touched
  Touch touch(slice, write, lanes);
  if (slice->row_end) touch.rows = std::clamp<int64_t>(scope.Of(slice->row_end.value()).high, 1, touch.rows);
  if (slice->col_end) touch.cols = std::clamp<int64_t>(scope.Of(slice->col_end.value()).high, 1, touch.cols);
  return meetings_.Touches(std::move(touch));
}

MeetingPlace StepPlanner::Temporary(int64_t bytes, bool write) {
  temporary_bytes_ = std::max(temporary_bytes_, bytes);
  return meetings_.Touches(TouchOf(kTemporary, bytes, write));
}

void StepPlanner::Starts() { meetings_.Notes(TouchOf(kStart, 1, true)); }

void StepPlanner::SeesStart() { starts_.push_back(meetings_.Asks(TouchOf(kStart, 1, false))); }

void StepPlanner::OnlySome(const std::function<void()>& body) {
  meetings_.OpenSome();
  body();
  meetings_.CloseSome();
}

void StepPlanner::Enter(const Loop& loop) {
  const std::string name(loop->var);
  scope.Bind(name, name, {0, std::max<int64_t>(loop->extent - 1, 0)});
  // a loop without a round has no meeting
  if (RoundsOf(loop)) meetings_.OpenSome();
  meetings_.Enter(loop);
}

void StepPlanner::Leave(const Loop& loop) {
  meetings_.Leave(loop);
  if (RoundsOf(loop)) meetings_.CloseSome();
}

bool StepPlanner::MeetsAtStart(const std::vector<bool>& meets) const {
  return std::any_of(starts_.begin(), starts_.end(), [&](MeetingPlace place) { return meets[place]; });
}

void StepPlanner::Refuse(const std::string& what, const std::string& need, const std::string& limit,
                         const std::string& remedy) const {
  CodegenError(what, where, need, limit, remedy);
}

}  // namespace uir::codegen::cuda
