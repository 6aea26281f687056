// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/bulk.h"

#include <algorithm>
#include <cstdint>

#include "codegen/attributes.h"
#include "codegen/cuda/async.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief The runs of a move that are contiguous on both sides. */
struct Runs {
  bool along_rows = true;
  int64_t count = 1;
  int64_t bytes = 0;
};

Runs RunsOf(const IOp& move) {
  const ISlice target = move->targets[0], source = move->sources[0];
  const int bytes = TypeOf(std::string(source->pointer->dtype)).bytes;
  Runs runs;
  runs.along_rows = source->col_stride == 1 && target->col_stride == 1;
  const int64_t lines = runs.along_rows ? source->rows : source->cols;
  const int64_t length = runs.along_rows ? source->cols : source->rows;
  auto follows = [&](const ISlice& slice) {
    return lines == 1 || (runs.along_rows ? slice->row_stride : slice->col_stride) == length;
  };
  const bool one = follows(source) && follows(target);
  runs.count = one ? 1 : lines;
  runs.bytes = (one ? lines * length : length) * bytes;
  return runs;
}

/*! \brief Whether runs have, and begin on both sides at, multiples of what a bulk copy moves. */
bool IsAligned(const Plan& plan, const IOp& move) {
  constexpr int64_t kPiece = 16;
  const Runs runs = RunsOf(move);
  const int64_t stated = StatedAlign(move);
  bool aligned = runs.bytes % kPiece == 0;
  for (const ISlice& slice : {move->sources[0], move->targets[0]}) {
    const int64_t pitch =
        (runs.along_rows ? slice->row_stride : slice->col_stride) * TypeOf(std::string(slice->pointer->dtype)).bytes;
    aligned = aligned && (runs.count == 1 || pitch % kPiece == 0);
    aligned = aligned && AccessOf(slice, plan.scope(), stated).align % kPiece == 0;
  }
  return aligned;
}

/*! \brief The barrier object of a group of a ring. */
std::string Barrier(const Emitter& e, int ring, const std::string& group) {
  return e.rings[ring].full + " + " + group + " % " + Text(e.body.async().rings()[ring].stages);
}

/*! \brief Whether warps of a block take part in a ring together. */
bool IsShared(const Plan& plan, const Ring& ring) { return !ring.own && plan.graph()->num_units > 1; }

/*! \brief Bulk copies, counted by a ring. */
class BulkCopyStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  int ring = 0;
  Runs runs;
  MeetingPlace read = kNowhere, written = kNowhere;
};

}  // namespace

std::string WhyNotBulk(const Plan& plan, const std::vector<Use>& uses, const IOp& move) {
  const ISlice target = move->targets[0], source = move->sources[0];
  const std::string name(source->pointer->name);
  if (!StagedCopiesOf(plan.arch()).bulk) return plan.arch().Name() + " has no bulk copies";
  if (!BoxText(source).empty()) return name + " has a ragged end";
  if (plan.HomeOf(target).permuted()) return std::string(target->pointer->name) + " is swizzled";
  if (!IsAligned(plan, move)) {
    return "the rows of " + name + " are not proved to have, and to begin at, multiples of 16 bytes";
  }
  // what this kernel wrote would have to be made visible to the engine that copies
  const bool written =
      std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.write && use.pointer() == name; });
  return written ? "the kernel writes " + name + " itself" : "";
}

int64_t BytesOfRing(const Plan& plan, const Ring& ring) {
  return ring.stages * static_cast<int64_t>(sizeof(uint64_t)) * (ring.own ? plan.graph()->num_units : 1);
}

int64_t BytesOfCopy(const IOp& move) {
  const Runs runs = RunsOf(move);
  return runs.count * runs.bytes;
}

void PlanRings(StepPlanner& p, const std::vector<Ring>& rings) {
  if (rings.empty()) return;
  const bool shared = std::any_of(rings.begin(), rings.end(), [&](const Ring& ring) { return IsShared(p.plan, ring); });
  if (!shared) p.Starts();
}

void OpenRings(Emitter& e) {
  const std::vector<Ring>& rings = e.body.async().rings();
  if (rings.empty()) return;
  const int64_t units = e.plan.graph()->num_units;
  bool shared = false;
  e.Prologue("// barrier objects of loads that run ahead, the groups of them that have begun and that have arrived");
  for (const Ring& ring : rings) {
    e.rings.push_back({e.names.Fresh("full"), e.names.Fresh("begun"), e.names.Fresh("waited")});
    const RingTexts& texts = e.rings.back();
    std::string at = Text(ring.at);
    if (ring.own && units > 1) at += " + unit * " + Text(ring.stages * static_cast<int64_t>(sizeof(uint64_t)));
    e.needs.Core("shared_at");
    e.Prologue("auto " + texts.full + " = shared_at<uint64_t, " + Text(ring.stages) + ">(smem, " + at + ");");
    e.Prologue("unsigned " + texts.begun + " = 0;");
    e.Prologue("unsigned " + texts.waited + " = 0;");
    shared = shared || IsShared(e.plan, ring);
    e.needs.Intrinsic("mbarrier_init");
    for (int i = 0; i < ring.stages; ++i) {
      e.Prologue(std::string("if (") + (ring.own ? "lane" : "threadIdx.x") + " == 0) mbarrier_init(" + texts.full +
                 " + " + Text(i) + ", " + Text(ring.own ? 1 : units) + ");");
    }
  }
  // the engine that copies sees them initialised, and so does everybody else
  e.needs.Intrinsic("fence_async");
  e.Prologue("if (lane == 0) fence_async();");
  if (shared) e.Prologue("__syncthreads();");
}

std::unique_ptr<Step> PlanBulkCopy(StepPlanner& p, const IOp& move, int ring) {
  auto step = std::make_unique<BulkCopyStep>(move);
  step->ring = ring;
  step->runs = RunsOf(move);
  step->read = p.Reads(move->sources[0]);
  step->written = p.Writes(move->targets[0]);
  // several lanes copy by what one of them set up
  if (step->runs.count > 1) p.SeesStart();
  return step;
}

void BulkCopyStep::Print(Emitter& e) const {
  const ISlice target = iop->targets[0], source = iop->sources[0];
  e.Meet(read);
  e.Meet(written);
  e.needs.Intrinsic("bulk_copy");
  std::string line = "0";
  if (runs.count == 1) {
    e.out.Open("if (lane == 0)");
  } else {
    e.MeetAtStart();
    line = e.names.Fresh("line");
    e.out.Line("#pragma unroll");
    e.out.Open("for (int " + line + " = lane; " + line + " < " + Text(runs.count) + "; " + line + " += 32)");
  }
  const std::string row = runs.along_rows ? line : "0", col = runs.along_rows ? "0" : line;
  e.out.Line("bulk_copy(" + e.Element(target, row, col) + ", " + e.Element(source, row, col) + ", " + Text(runs.bytes) +
             ", " + Barrier(e, ring, e.rings[ring].begun) + ");");
  e.out.Close();
}

void EmitRingWait(Emitter& e, const RingStep& step) {
  if (!step.wait) return;
  const auto& [full, begun, waited] = e.rings[step.ring];
  e.MeetAtStart();
  e.needs.Intrinsic("mbarrier_wait");
  const std::string left = *step.wait == 0 ? "" : " + " + Text(*step.wait);
  const std::string stages = Text(e.body.async().rings()[step.ring].stages);
  e.out.Open("for (; " + waited + left + " < " + begun + "; ++" + waited + ")");
  e.out.Line("mbarrier_wait(" + Barrier(e, step.ring, waited) + ", " + waited + " / " + stages + " % 2);");
  e.out.Close();
}

void EmitRingBegin(Emitter& e, const RingStep& step) {
  if (step.expect == 0) return;
  e.needs.Intrinsic("mbarrier_expect_tx");
  e.out.Line("if (lane == 0) mbarrier_expect_tx(" + Barrier(e, step.ring, e.rings[step.ring].begun) + ", " +
             Text(step.expect) + ");");
}

void EmitRingCommit(Emitter& e, const RingStep& step) {
  if (step.commit) e.out.Line("++" + e.rings[step.ring].begun + ";");
}

}  // namespace uir::codegen::cuda
