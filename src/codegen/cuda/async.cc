// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/async.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <cstddef>

#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

bool IsSharedMemory(const Home& home) { return home.kind == Home::Kind::kSram || home.kind == Home::Kind::kScratch; }

Path Below(const Path& path, int index) {
  Path out = path;
  out.push_back(index);
  return out;
}

bool Under(const Path& path, const Path& root) {
  return path.size() >= root.size() && std::equal(root.begin(), root.end(), path.begin());
}

}  // namespace

int CopyBytes(const Plan& plan, const Scope& scope, const IOp& move) {
  if (move->op != "move" || !StagedCopiesOf(plan.arch()).lanes) return 0;
  const ISlice target = move->targets[0], source = move->sources[0];
  if (plan.HomeOf(source).kind != Home::Kind::kDram || !IsSharedMemory(plan.HomeOf(target))) return 0;
  if (!BoxText(target).empty() || source->row_begin || source->col_begin) return 0;
  const bool bounded = !BoxText(source).empty();
  if (bounded && !IsZeroPadded(move)) return 0;
  // a row in memory runs along the columns of both, or along the rows of both
  const bool along = source->col_stride == 1 && target->col_stride == 1;
  if (!along && (bounded || source->row_stride != 1 || target->row_stride != 1)) return 0;
  const int bytes = TypeOf(std::string(source->pointer->dtype)).bytes;
  const int64_t length = (along ? source->cols : source->rows) * bytes;
  const int64_t stated = StatedAlign(move);
  for (int piece : {16, 8, 4}) {
    bool fits = length % piece == 0;
    for (const ISlice& slice : {source, target}) {
      const int64_t pitch = (along ? slice->row_stride : slice->col_stride) * bytes;
      const bool single = (along ? slice->rows : slice->cols) == 1;
      fits = fits && (single || pitch % piece == 0) && AccessOf(slice, scope, stated).align % piece == 0;
    }
    if (fits) return piece;
  }
  return 0;
}

/*! \brief The analysis of one multi-buffered loop: it fills in steps, or leaves its moves as they are. */
class StagedLoop {
 public:
  StagedLoop(AsyncPlan* plan, const ffi::Array<ffi::ObjectRef>& parent, const Path& path, int index, int64_t stages)
      : all_(*plan), parent_(parent), path_(path), index_(index), stages_(static_cast<int>(stages)) {
    loop_ = parent[index].as_or_throw<Loop>();
    own_ = Below(path, index);
  }

  void Plan() {
    FindBuffers();
    if (buffers_.empty() || !FindPrologue() || !FindLoads()) return;
    std::map<Path, AsyncStep> made;
    if (!Prologue(&made) || !Steady(&made) || !Epilogue(&made)) return;
    for (const Use& use : all_.uses_) {
      if (use.write && buffers_.count(use.pointer())) made[use.path].copy = true;
    }
    all_.buffers_.insert(buffers_.begin(), buffers_.end());
    std::string name(loop_->var), refusal = WhyNot();
    if (refusal.empty()) {
      UseRing(&made);
      all_.notes_.push_back("loop " + name + ": loads ahead by bulk copies");
    } else {
      all_.notes_.push_back("loop " + name + ": loads ahead by cp.async, since " + refusal);
    }
    for (auto& [path, step] : made) Merge(&all_.steps_[path], step);
  }

 private:
  static void Merge(AsyncStep* into, const AsyncStep& step) {
    into->copy = into->copy || step.copy;
    into->commit = into->commit || step.commit;
    if (step.wait) into->wait = into->wait ? std::min(*into->wait, *step.wait) : *step.wait;
    into->barrier = std::max(into->barrier, step.barrier);
    into->rings.insert(into->rings.end(), step.rings.begin(), step.rings.end());
    if (step.ring) into->ring = step.ring;
  }

  /*! \brief Why the copies of the loop cannot be bulk copies; empty where all of them can. */
  std::string WhyNot() const {
    for (const Use& use : all_.uses_) {
      if (!use.write || !buffers_.count(use.pointer())) continue;
      std::string why = WhyNotBulk(all_.plan_, all_.uses_, use.iop);
      if (!why.empty()) return why;
    }
    if (after_.empty()) return "nothing waits for its last copies";
    // barrier objects must not be what makes a kernel exceed its shared memory
    constexpr int64_t kRounded = 128;
    const IGraph& graph = all_.plan_.graph();
    int64_t bytes = all_.plan_.sram_bytes() + all_.plan_.scratch_bytes() * graph->num_units + kRounded +
                    BytesOfRing(all_.plan_, NewRing());
    for (const Ring& ring : all_.rings_) bytes += BytesOfRing(all_.plan_, ring);
    return bytes > graph->hardware->sram_bytes ? "shared memory has no room for barrier objects" : "";
  }

  Ring NewRing() const {
    Ring ring;
    ring.stages = stages_;
    ring.own = alone_;
    return ring;
  }

  /*! \brief Turns groups and their waits into those of a ring of barrier objects. */
  void UseRing(std::map<Path, AsyncStep>* made) {
    const int ring = static_cast<int>(all_.rings_.size());
    all_.rings_.push_back(NewRing());
    for (auto& [path, step] : *made) {
      if (step.wait || step.commit) step.rings.push_back({ring, step.wait, 0, step.commit});
      if (step.copy) step.ring = ring;
      // a barrier object has every lane see the bytes for which it waits
      if (step.wait && step.barrier == AsyncStep::Barrier::kWarp) step.barrier = AsyncStep::Barrier::kNone;
      step.wait.reset();
      step.commit = false;
    }
    const Path ahead = stages_ == 2 ? path_ : Below(path_, *before_.rbegin());
    Expect(ring, ahead, index_, made);
    Expect(ring, own_, -1, made);
  }

  /*! \brief Before the first copy of a group, which is what lies under `level` (before child `until`): its bytes. */
  void Expect(int ring, const Path& level, int until, std::map<Path, AsyncStep>* made) {
    int first = -1;
    int64_t bytes = 0;
    for (const Use& use : all_.uses_) {
      const int at = ChildOf(use.path, level);
      if (!use.write || !buffers_.count(use.pointer()) || at < 0) continue;
      if (level == path_ && at >= until) continue;
      first = first < 0 ? at : std::min(first, at);
      int64_t times = 1;
      for (size_t i = level.size(); i < use.loops.size(); ++i) times *= use.loops[i]->extent;
      bytes += times * BytesOfCopy(use.iop);
    }
    (*made)[Below(level, first)].rings.push_back({ring, std::nullopt, bytes, false});
  }

  /*! \brief Index in a body of the node that holds a path, where it lies under `root`; else -1. */
  static int ChildOf(const Path& path, const Path& root) {
    return path.size() > root.size() && Under(path, root) ? path[root.size()] : -1;
  }

  bool IsSync(const ffi::ObjectRef& node) const {
    const auto* iop = node.as<IOpNode>();
    return iop != nullptr && iop->op == "sync" && TextAttr(iop->attrs, "scope") != "reg";
  }

  /*! \brief The pointers that only copies write, beside and in the loop. */
  void FindBuffers() {
    std::set<std::string> refused;
    for (const Use& use : all_.uses_) {
      if (use.iop->op == "sync" || use.iop->op == "identity") continue;
      const bool beside = ChildOf(use.path, path_) >= 0;
      const bool copy = use.write && use.operand == 0 && CopyBytes(all_.plan_, all_.plan_.scope(), use.iop) > 0;
      if (!beside || use.operand == kBufferOperand || (use.write && !copy)) refused.insert(use.pointer());
      if (copy && Under(use.path, own_)) buffers_.insert(use.pointer());
    }
    for (const std::string& name : refused) buffers_.erase(name);
  }

  /*! \brief Where the buffers are filled and read beside the loop. */
  bool FindPrologue() {
    for (const Use& use : all_.uses_) {
      if (use.iop->op == "sync" || !buffers_.count(use.pointer())) continue;
      const int at = ChildOf(use.path, path_);
      if (at == index_) {
        (use.write ? loads_ : reads_).insert(use.path[own_.size()]);
      } else if (at < index_) {
        if (!use.write) return false;
        before_.insert(at);
      } else {
        if (use.write) return false;
        after_.insert(at);
      }
    }
    return !before_.empty() && !reads_.empty();
  }

  bool FindLoads() {
    for (int i = 0; i < static_cast<int>(loop_->body.size()); ++i) {
      if (IsSync(loop_->body[i])) syncs_.push_back(i);
      if (loads_.count(i) && reads_.count(i)) return false;
    }
    return true;
  }

  bool Prologue(std::map<Path, AsyncStep>* made) {
    const int last = *before_.rbegin();
    if (stages_ == 2) {
      for (int at : before_) {
        if (parent_[at].as<LoopNode>() != nullptr && parent_[at].as<LoopNode>()->attrs.count("stages")) return false;
      }
      (*made)[Below(path_, last)].commit = true;
    } else {
      // one loop over the S - 1 iterations that run ahead, a group each
      const auto* ahead = parent_[last].as<LoopNode>();
      if (before_.size() != 1 || ahead == nullptr || ahead->extent != stages_ - 1) return false;
      int final = -1;
      for (const Use& use : all_.uses_) {
        const Path root = Below(path_, last);
        if (use.write && buffers_.count(use.pointer()) && Under(use.path, root)) {
          final = std::max(final, use.path[root.size()]);
        }
      }
      (*made)[Below(Below(path_, last), final)].commit = true;
    }
    return true;
  }

  /*! \brief Waits in the loop: at each barrier for what is read between it and the next. */
  bool Steady(std::map<Path, AsyncStep>* made) {
    const int first_load = *loads_.begin(), last_load = *loads_.rbegin();
    (*made)[Below(own_, last_load)].commit = true;
    if (syncs_.empty()) return Alone(made, first_load, last_load);
    bool wraps = false;
    for (size_t n = 0; n < syncs_.size(); ++n) {
      const int at = syncs_[n], next = n + 1 < syncs_.size() ? syncs_[n + 1] : static_cast<int>(loop_->body.size());
      if (first_load < at && at < last_load) return false;
      // iteration k: groups 0 .. k + S - 1 have been committed after its loads, one less before
      const int newest = at > last_load ? stages_ - 1 : stages_ - 2;
      auto reads_in = [this](int from, int to) {
        return std::any_of(reads_.begin(), reads_.end(), [&](int r) { return from < r && r < to; });
      };
      const bool later = n + 1 == syncs_.size() && reads_in(-1, syncs_.front());
      wraps = wraps || later;
      if (later) {
        (*made)[Below(own_, at)].wait = newest - 1;
      } else if (reads_in(at, next)) {
        (*made)[Below(own_, at)].wait = newest;
      }
    }
    arrived_ = wraps ? 1 : 0;
    // what is read before the first barrier of the loop must have arrived when it begins
    const bool early = std::any_of(reads_.begin(), reads_.end(), [this](int r) { return r < syncs_.front(); });
    if (!early) return true;
    for (int at = index_ - 1; at > *before_.rbegin(); --at) {
      if (IsSync(parent_[at])) {
        (*made)[Below(path_, at)].wait = stages_ - 2;
        return true;
      }
    }
    AsyncStep& step = (*made)[own_];
    step.wait = stages_ - 2;
    step.barrier = AsyncStep::Barrier::kBlock;
    return true;
  }

  /*! \brief A loop without barriers: each warp has its own part, and waits for itself. */
  bool Alone(std::map<Path, AsyncStep>* made, int first_load, int last_load) {
    if (*reads_.begin() < last_load) return false;
    AsyncStep& step = (*made)[Below(own_, *reads_.begin())];
    step.wait = stages_ - 1;
    step.barrier = AsyncStep::Barrier::kWarp;
    // no lane still reads what is overwritten, in the iteration before or in a turn of a loop around this one
    (*made)[Below(own_, first_load)].barrier = AsyncStep::Barrier::kWarp;
    if (IsRepeated()) (*made)[Below(path_, *before_.begin())].barrier = AsyncStep::Barrier::kWarp;
    arrived_ = 0;
    alone_ = true;
    return true;
  }

  /*! \brief Whether a loop around this one has several turns. */
  bool IsRepeated() const {
    return std::any_of(all_.uses_.begin(), all_.uses_.end(), [this](const Use& use) {
      if (!Under(use.path, own_)) return false;
      const auto around = use.loops.begin() + static_cast<std::ptrdiff_t>(path_.size());
      return std::any_of(use.loops.begin(), around, [](const Loop& loop) { return loop->extent > 1; });
    });
  }

  /*! \brief The last groups, which the iterations after the loop read. */
  bool Epilogue(std::map<Path, AsyncStep>* made) {
    if (after_.empty()) return true;
    const int first = *after_.begin();
    for (int at = index_ + 1; at < first; ++at) {
      if (IsSync(parent_[at])) {
        (*made)[Below(path_, at)].wait = 0;
        return true;
      }
    }
    // with E iterations behind, the groups E .. E + S - 2 are read; so many of them the loop has waited for
    if (!alone_ && arrived_ >= stages_ - 1) return true;
    AsyncStep& step = (*made)[Below(path_, first)];
    step.wait = 0;
    step.barrier = alone_ ? AsyncStep::Barrier::kWarp : AsyncStep::Barrier::kBlock;
    return true;
  }

  AsyncPlan& all_;
  const ffi::Array<ffi::ObjectRef>& parent_;
  const Path& path_;
  int index_, stages_, arrived_ = 0;
  bool alone_ = false;
  Loop loop_;
  Path own_;
  std::set<std::string> buffers_;
  std::set<int> before_, after_, loads_, reads_;
  std::vector<int> syncs_;
};

AsyncPlan::AsyncPlan(const Plan& plan, const std::vector<Use>& uses) : plan_(plan), uses_(uses) {
  Body(plan.graph()->body, {});
  PlaceRings();
}

void AsyncPlan::PlaceRings() {
  const int64_t begin = plan_.sram_bytes();
  for (Ring& ring : rings_) {
    ring.at = RoundUp(begin + ring_bytes_, sizeof(uint64_t));
    ring_bytes_ = ring.at + BytesOfRing(plan_, ring) - begin;
  }
}

void AsyncPlan::Body(const ffi::Array<ffi::ObjectRef>& body, const Path& path) {
  for (int i = 0; i < static_cast<int>(body.size()); ++i) {
    const auto* loop = body[i].as<LoopNode>();
    if (loop == nullptr) continue;
    Body(loop->body, Below(path, i));
    const auto stages = AttrOr<int64_t>(loop->attrs, "stages", 0);
    if (stages > 0) StagedLoop(this, body, path, i, stages).Plan();
  }
}

const AsyncStep* AsyncPlan::At(const Path& path) const {
  auto found = steps_.find(path);
  return found == steps_.end() ? nullptr : &found->second;
}

void PlanBefore(StepPlanner& p, const AsyncStep& step) {
  for (const RingStep& one : step.rings) {
    if (one.wait) p.SeesStart();
  }
  if (step.barrier != AsyncStep::Barrier::kNone) p.Met();
}

void EmitBefore(Emitter& e, const AsyncStep& step) {
  if (step.wait) {
    e.needs.Intrinsic("cp_async_wait");
    e.out.Line("cp_async_wait<" + std::to_string(*step.wait) + ">();");
  }
  for (const RingStep& one : step.rings) EmitRingWait(e, one);
  if (step.barrier == AsyncStep::Barrier::kBlock && e.plan.graph()->num_units > 1) {
    e.BlockBarrier();
  } else if (step.barrier != AsyncStep::Barrier::kNone) {
    e.WarpBarrier();
  }
  for (const RingStep& one : step.rings) EmitRingBegin(e, one);
}

void EmitAfter(Emitter& e, const AsyncStep& step) {
  for (const RingStep& one : step.rings) EmitRingCommit(e, one);
  if (!step.commit) return;
  e.needs.Intrinsic("cp_async_commit");
  e.out.Line("cp_async_commit();");
}

namespace {

/*! \brief Copies of so many bytes, lane by lane. */
class LaneCopyStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  int piece = 0;
  MeetingPlace read = kNowhere, written = kNowhere;
};

void LaneCopyStep::Print(Emitter& e) const {
  const ISlice target = iop->targets[0], source = iop->sources[0];
  const int bytes = TypeOf(std::string(source->pointer->dtype)).bytes, each = piece / bytes;
  const bool along = source->col_stride == 1 && target->col_stride == 1;
  const int64_t lines = along ? source->rows : source->cols;
  const int64_t in_line = (along ? source->cols : source->rows) / each, pieces = lines * in_line;
  const Box box = e.BoxOf(source);
  const bool bounded = !box.whole();
  e.Meet(read);
  e.Meet(written);
  const std::string name = "cp_async_" + std::to_string(piece) + (bounded ? "_zfill" : "");
  e.needs.Intrinsic(name);
  std::string p = e.names.Fresh("p"), line = e.names.Fresh("line"), at = e.names.Fresh("at");
  e.out.Line("#pragma unroll");
  e.out.Open("for (int " + p + " = lane; " + p + " < " + std::to_string(pieces) + "; " + p + " += 32)");
  e.out.Line("const int " + line + " = " + p + " / " + std::to_string(in_line) + ", " + at + " = " + p + " % " +
             std::to_string(in_line) + " * " + std::to_string(each) + ";");
  const std::string &row = along ? line : at, &col = along ? at : line;
  std::string call = name + "(" + e.Element(target, row, col) + ", " + e.Element(source, row, col);
  if (bounded) {
    std::string count = std::to_string(piece);
    if (box.col_end) {
      count = "min(max(" + *box.col_end + " - " + col + ", 0), " + std::to_string(each) + ")" +
              (bytes > 1 ? " * " + std::to_string(bytes) : "");
    }
    call += ", " + (box.row_end ? row + " < " + *box.row_end + " ? " + count + " : 0" : count);
  }
  e.out.Line(call + ");");
  e.out.Close();
}

}  // namespace

std::unique_ptr<Step> PlanCopy(StepPlanner& p, const IOp& move) {
  auto step = std::make_unique<LaneCopyStep>(move);
  step->piece = CopyBytes(p.plan, p.plan.scope(), move);
  step->read = p.Reads(move->sources[0]);
  step->written = p.Writes(move->targets[0]);
  return step;
}

}  // namespace uir::codegen::cuda
