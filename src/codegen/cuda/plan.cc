// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/plan.h"

#include <tvm/ffi/error.h>

#include <algorithm>

#include "base/attrs.h"
#include "codegen/cuda/planner.h"

namespace uir::codegen::cuda {

namespace {

Arch ArchOf(const HardwareModel& hardware) {
  const std::string arch = AttrOr(hardware->figures, "arch", std::string());
  return arch.empty() ? Arch() : Arch::Parse(arch);
}

/*! \brief Bytes of a lane's widest access to dram. */
int64_t WidestAccess(const IGraph& graph) {
  const auto vector = AttrOr<int64_t>(graph->attrs, "vector_bytes", kWidestBytes * kLanes);
  return std::clamp<int64_t>(vector / kLanes, 1, kWidestBytes);
}

}  // namespace

Plan::Plan(const IGraph& graph)
    : graph_(graph), arch_(ArchOf(graph->hardware)), scope_(ScopeOf(graph)), widest_(WidestAccess(graph)) {
  Planner planner(this);
  planner.ChooseHomes();
  planner.ChooseLayouts();
  planner.ChooseWarpgroups();
  planner.ChooseSwizzles();
  planner.FindSpared();
  planner.Place();
}

const Home& Plan::HomeOf(const std::string& pointer) const {
  auto it = homes_.find(pointer);
  TVM_FFI_CHECK(it != homes_.end(), InternalError) << "the graph has no pointer '" << pointer << "'";
  return it->second;
}

Access Plan::MoveOf(const ISlice& slice, const Scope& scope, int64_t stated) const {
  Access access = AccessOf(slice, scope, stated);
  if (slice->pointer->level == "dram") access.widest = widest_;
  return access;
}

const WgmmaChoice* Plan::WgmmaOf(const IOp& iop) const {
  auto it = wgmma_.find(iop.get());
  return it == wgmma_.end() ? nullptr : &it->second;
}

Layout Plan::WorkLayout(const IOp& iop) const {
  std::vector<ISlice> slices(iop->targets.begin(), iop->targets.end());
  slices.insert(slices.end(), iop->sources.begin(), iop->sources.end());
  const Home* best = nullptr;
  for (const ISlice& slice : slices) {
    const Home& home = HomeOf(slice);
    if (!home.registers()) continue;
    // the operand with most elements decides: a column's layout says nothing of the other side
    if (best == nullptr || home.fragment.rows * home.fragment.cols > best->fragment.rows * best->fragment.cols) {
      best = &home;
    }
  }
  if (best != nullptr) return best->class_layout;
  std::vector<Access> accesses;
  for (const ISlice& slice : slices) accesses.push_back(MoveOf(slice, scope_));
  return ChooseLayout(accesses, {});
}

bool Plan::SparesOutside(const ISlice& target) const {
  bool whole = !target->row_begin && !target->row_end && !target->col_begin && !target->col_end;
  auto it = spares_.find(std::string(target->pointer->name));
  return !whole && it != spares_.end() && it->second.count(BoxText(target)) == 0;
}

}  // namespace uir::codegen::cuda
