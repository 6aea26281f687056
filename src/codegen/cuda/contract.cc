// SPDX-License-Identifier: Apache-2.0
// The table of matrix instructions, and what a product asks of the plan.
#include "codegen/cuda/contract.h"

#include <algorithm>

#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/cuda/fragments.h"
#include "codegen/cuda/staged.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

constexpr MmaRow kMma[] = {
    {"fp16", "fp32", "mma_m16n8k16_f16", 16, 16, 2, false},
    {"bf16", "fp32", "mma_m16n8k16_bf16", 16, 16, 2, false},
    {"fp8e4m3", "fp32", "mma_m16n8k32_e4m3", 16, 32, 4, false},
    {"fp8e5m2", "fp32", "mma_m16n8k32_e5m2", 16, 32, 4, false},
    {"fp32", "fp32", "mma_m16n8k8_tf32", 16, 8, 2, true},
    {"int8", "int32", "mma_m16n8k32_s8", 16, 32, 4, false},
    {"uint8", "int32", "mma_m16n8k32_u8", 16, 32, 4, false},
    // two instructions of 4 columns each contract the pairs that the lanes hold
    {"fp64", "fp64", "mma_m8n8k4_f64", 8, 8, 2, false},
};

int64_t PowerOfTwoAtLeast(int64_t n) {
  int64_t out = 1;
  while (out < n) out *= 2;
  return out;
}

/*! \brief A tile of registers for fused multiply-adds: neighbours along a row of 16 bytes, lanes as square as may be.
 */
Layout FmaLayout(const IOp& iop) {
  const ISlice& t = iop->targets[0];
  const int bytes = TypeOf(std::string(t->pointer->dtype)).bytes;
  Layout out;
  out.vec_c = static_cast<int>(std::min<int64_t>(16 / std::max(bytes, 4), PowerOfTwoAtLeast(t->cols)));
  out.lanes_c = static_cast<int>(std::min<int64_t>(8, PowerOfTwoAtLeast(CeilDiv(t->cols, out.vec_c))));
  if (t->rows < kLanes / out.lanes_c) {
    out.lanes_c = static_cast<int>(kLanes / PowerOfTwoAtLeast(t->rows));
  }
  out.lanes_r = kLanes / out.lanes_c;
  return out;
}

}  // namespace

const MmaRow* MmaOf(const std::string& target, const std::string& factor, const Arch& arch, bool may_round) {
  for (const MmaRow& row : kMma) {
    if (factor != row.factor || (row.rounds && !may_round) || !HasIntrinsic(row.intrinsic, arch)) continue;
    // a narrow float is summed in fp32 and rounded once
    if (target == row.sum || (std::string(row.sum) == "fp32" && IsNarrow(TypeOf(target)))) return &row;
  }
  return nullptr;
}

const MmaRow* MmaOf(const IOp& iop, const IGraph& graph, const Arch& arch) {
  const ISlice& t = iop->targets[0];
  if (t->rows == 1 || t->cols == 1) return nullptr;
  return MmaOf(std::string(t->pointer->dtype), std::string(iop->sources[0]->pointer->dtype), arch, MayRound(graph));
}

Layout SumsLayout(const IOp& iop) {
  return Layout{8, 4, ComesInPairs(iop, 0) ? 2 : 1, ComesInPairs(iop, 1) ? 4 : 2, false};
}
Layout FactorLayoutA(const MmaRow& row) { return Layout{8, 4, 1, row.vec, false}; }
Layout FactorLayoutB(const MmaRow& row) { return Layout{4, 8, row.vec, 1, true}; }

std::vector<Wish> ContractWishes(const IOp& iop, const IGraph& graph, const Arch& arch) {
  const MmaRow* row = MmaOf(iop, graph, arch);
  if (row == nullptr) return {Wish{0, FmaLayout(iop), false}};
  return {Wish{0, SumsLayout(iop), true}, Wish{1, FactorLayoutA(*row), false}, Wish{2, FactorLayoutB(*row), false}};
}

StepPtr PlanContract(StepPlanner& p, const IOp& iop) {
  const MmaRow* row = MmaOf(iop, p.plan.graph(), p.plan.arch());
  const WgmmaChoice* together = p.plan.WgmmaOf(iop);
  if (row == nullptr) return PlanFma(p, iop);
  return together != nullptr && together->row != nullptr ? PlanWgmma(p, iop, *row, *together) : PlanMma(p, iop, *row);
}

std::vector<TileAccess> ContractReads(const Plan& plan, const IOp& iop, int source) {
  const MmaRow* row = MmaOf(iop, plan.graph(), plan.arch());
  return row != nullptr ? FragmentReads(plan, iop, source, *row) : FmaReads(plan, iop, source);
}

ReadableBounds ReadableBoundsOf(const StepPlanner& p, const IOp& iop, int source) {
  const ISlice slice = iop->sources[source], target = iop->targets[0];
  ReadableBounds out;
  out.bounds = p.BoundsOf(slice);
  const bool bounded = source == 0 ? target->row_begin || target->row_end : target->col_begin || target->col_end;
  bool& shared = source == 0 ? out.bounds.rows : out.bounds.cols;
  if (!bounded || shared || IsFilled(p.uses, p.plan.scope(), slice)) return out;
  out.as_result = true;
  const Bounds whole = p.BoundsOf(target);
  shared = source == 0 ? whole.rows : whole.cols;
  return out;
}

Box ReadableBox(Emitter& e, const IOp& iop, int source, const ReadableBounds& bounds) {
  Box box = e.BoxOf(iop->sources[source]);
  if (!bounds.as_result) return box;
  const Box whole = e.BoxOf(iop->targets[0]);
  if (source == 0) {
    box.row_begin = whole.row_begin;
    box.row_end = whole.row_end;
  } else {
    box.col_begin = whole.col_begin;
    box.col_end = whole.col_end;
  }
  return box;
}

std::string Grouped(const std::string& text) { return text.find(' ') == std::string::npos ? text : "(" + text + ")"; }

std::string OpenUnrolled(Emitter& e, const std::string& hint, int64_t extent) {
  if (extent == 1) return "0";
  std::string name = e.names.Fresh(hint);
  e.out.Line("#pragma unroll");
  e.out.Open("for (int " + name + " = 0; " + name + " < " + std::to_string(extent) + "; ++" + name + ")");
  return name;
}

void CloseUnrolled(Emitter& e, int64_t extent) {
  if (extent != 1) e.out.Close();
}

}  // namespace uir::codegen::cuda
