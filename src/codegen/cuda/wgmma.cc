// SPDX-License-Identifier: Apache-2.0
// Prints products of four warps: fences, one instruction for each step, 64 rows and piece of the columns, a
// wait.
#include "codegen/cuda/wgmma.h"

#include <algorithm>
#include <optional>

#include "codegen/cuda/contract.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/fragments.h"
#include "codegen/cuda/step_planner.h"
#include "codegen/cuda/sums.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief The descriptor of a factor's part from `major` on, in step k. */
std::string Descriptor(Emitter& e, const ISlice& slice, const WgmmaTile& tile, bool is_a, int64_t major, int depth,
                       const std::string& k) {
  auto node = ffi::make_object<ISliceNode>(*slice.get());
  node->offset = tile.offset;
  const ISlice first(node);
  const std::string along = Plus({{depth, k}}), side = Text(major);
  const std::string element = is_a ? e.Element(first, side, Grouped(along)) : e.Element(first, Grouped(along), side);
  // atoms of one line of atoms follow each other; a single one has no next
  const int64_t leading = tile.across ? kAtomRows * std::min(tile.pitch, kAtomLine) : 16;
  return "wgmma_tile<" + Text(tile.chunks) + ">(" + element + ", " + Text(leading) + ", " +
         Text(kAtomRows * tile.pitch) + ")";
}

/*! \brief A product of four warps. */
class WgmmaStep final : public Step {
 public:
  WgmmaStep(const IOp& iop, const MmaRow& mma, const WgmmaChoice& choice) : Step(iop), mma(mma), choice(choice) {}
  void Print(Emitter& e) const final;

  const MmaRow& mma;
  const WgmmaChoice& choice;
  SumsPlan sums;
  /*! \brief a in registers, where it is brought there as mma.sync has it. */
  std::optional<FragmentsPlan> fragments;
  MeetingPlace read_a = kNowhere, read_b = kNowhere;
};

void WgmmaStep::Print(Emitter& e) const {
  const ISlice a = iop->sources[0], b = iop->sources[1];
  const int64_t steps = a->cols / mma.k, groups = iop->targets[0]->rows / kWarpRows;
  const bool tiles = choice.a.has_value();
  for (const char* name : {"wgmma_fence", "wgmma_commit", "wgmma_wait", "wgmma_tile"}) e.needs.Intrinsic(name);
  e.needs.Dtype(std::string(b->pointer->dtype));
  ProductSums product(e, sums);
  e.Meet(read_b);
  e.out.Open("");
  std::string parts;
  if (tiles) {
    e.Meet(read_a);
  } else {
    std::optional<FragmentPrinter> printer;
    if (fragments) printer.emplace(e, iop, *fragments, mma);
    parts = e.names.Fresh("a_parts");
    e.needs.Core("reg");
    e.out.Line("reg<uint32_t, " + Text(4 * groups) + "> " + parts + "[" + Text(steps) + "];");
    const std::string k = OpenUnrolled(e, "k", steps), i = OpenUnrolled(e, "i", groups);
    const std::string part = parts + "[" + k + "]";
    if (printer) {
      printer->FetchA(part, i, k, false);
    } else {
      e.Meet(read_a);
      e.needs.Intrinsic("ldmatrix_x4");
      e.out.Line("ldmatrix_x4(&" + part + "[" + Plus({{4, i}}) + "], " +
                 e.Element(a, Grouped(Plus({{kWarpRows, i}, {1, "lane % 16"}})),
                           Grouped(Plus({{kTf32Depth, k}, {4, "(lane / 16)"}}))) +
                 ");");
    }
    CloseUnrolled(e, groups);
    CloseUnrolled(e, steps);
  }
  e.out.Line("wgmma_fence(" + product.regs().name + (tiles ? "" : ", " + parts) + ");");
  const std::string k = OpenUnrolled(e, "k", steps);
  const std::string group = OpenUnrolled(e, "i", groups);
  for (const auto& [first, columns] : choice.pieces) {
    const std::string name = WgmmaName(*choice.row, columns, tiles);
    e.needs.Intrinsic(name);
    std::string flags;
    if (choice.row->either_way) {
      flags = "<" + (tiles ? Text(choice.a->across) + ", " : "") + Text(choice.b.across) + ">";
    }
    auto rows = [&](int above) {
      return "&" +
             product.regs().At(Grouped(Plus({{2, group}, {1, Text(above)}})), Text(first / kMmaColumns), "0", "0");
    };
    const std::string factor = tiles ? Descriptor(e, a, *choice.a, true, 0, mma.k, k)
                                     : "&" + parts + "[" + k + "][" + Plus({{4, group}}) + "]";
    e.out.Line(name + flags + "(" + rows(0) + ", " + rows(1) + ", " + factor + ", " +
               Descriptor(e, b, choice.b, false, first, mma.k, k) + ");");
  }
  CloseUnrolled(e, groups);
  CloseUnrolled(e, steps);
  e.out.Line("wgmma_commit();");
  e.out.Line("wgmma_wait<0>(" + product.regs().name + ");");
  e.out.Close();
  product.Finish();
}

}  // namespace

StepPtr PlanWgmma(StepPlanner& p, const IOp& iop, const MmaRow& mma, const WgmmaChoice& choice) {
  auto step = std::make_unique<WgmmaStep>(iop, mma, choice);
  step->sums = SumsPlan::OfInstruction(p, iop, mma);
  step->read_b = p.Reads(iop->sources[1]);
  if (choice.a || mma.k == kTf32Depth) {
    step->read_a = p.Reads(iop->sources[0]);
  } else {
    step->fragments = FragmentsPlan::Of(p, iop, mma);
  }
  step->sums.Finish(p);
  return step;
}

}  // namespace uir::codegen::cuda
