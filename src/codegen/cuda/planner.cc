// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/planner.h"

#include <algorithm>
#include <set>

#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/cuda/asked_layouts.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/piece.h"
#include "codegen/cuda/scalar.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Where homes of atoms begin: they change places by the address, so with a whole one. */
constexpr int64_t kAtomAlign = 1024;

int64_t BytesOf(const IPointer& pointer) { return pointer->size * TypeOf(std::string(pointer->dtype)).bytes; }

/*! \brief The operand's slice; nullptr where the iOp has no such operand. */
const ISlice* OperandOf(const IOp& iop, int operand, std::vector<ISlice>* hold) {
  size_t index = operand == 0 ? 0 : operand - 1;
  const auto& slices = operand == 0 ? iop->targets : iop->sources;
  if (index >= slices.size()) return nullptr;
  hold->push_back(slices[index]);
  return &hold->back();
}

Work::Meets MeetsOf(const IOp& iop) {
  if (iop->op != "reduce") return Work::Meets::kNo;
  return IsByRow(iop) ? Work::Meets::kRow : Work::Meets::kCol;
}

}  // namespace

Planner::Planner(Plan* plan) : plan_(plan), uses_(UsesOf(plan->graph_)), asked_(AskedLayouts(plan->graph_)) {
  by_pointer_ = ByPointer(uses_);
}

void Planner::ChooseHomes() {
  for (const IPointer& pointer : plan_->graph_->pointers) {
    std::string name(pointer->name);
    Home& home = plan_->homes_[name];
    if (pointer->level == "dram") {
      home.kind = Home::Kind::kDram;
    } else if (pointer->level == "sram") {
      home.kind = Home::Kind::kSram;
    } else {
      HomeInRegisters(name, by_pointer_[name]);
    }
  }
}

void Planner::HomeInRegisters(const std::string& pointer, const std::vector<const Use*>& uses) {
  Home& home = plan_->homes_[pointer];
  home.kind = Home::Kind::kScratch;
  std::set<Piece> pieces;
  for (const Use* use : uses) {
    if (!use->slice->offset->terms.empty()) {
      home.reason = "the offset " + use->slice->offset.ToString() + " is known only when the kernel runs";
      return;
    }
    if (use->operand >= 0 && (OpRowOf(use->iop).in_memory >> use->operand & 1) != 0) {
      home.reason = "the indices of a " + std::string(use->iop->op) + " are known only when the kernel runs";
      return;
    }
    pieces.emplace(use->slice);
  }
  if (pieces.empty()) {
    home.reason = "nothing uses it";
    return;
  }
  if (pieces.size() > 1) {
    home.reason = "its slices are different pieces of it";
    return;
  }
  home.kind = Home::Kind::kRegisters;
  home.piece = *pieces.begin();
  home.fragment = Fragment(Layout(), home.piece.rows, home.piece.cols);
}

std::string Planner::Root(const std::string& pointer) {
  std::string at = pointer;
  for (auto it = parent_.find(at); it != parent_.end(); it = parent_.find(at)) at = it->second;
  return at;
}

void Planner::Join(const std::string& a, const std::string& b) {
  std::string x = Root(a), y = Root(b);
  if (x == y) return;
  auto asked = asked_.find(x), other = asked_.find(y);
  if (asked != asked_.end() && other != asked_.end() && asked->second != other->second) return;
  if (other != asked_.end()) asked = other;
  if (asked != asked_.end()) asked_.emplace(std::min(x, y), asked->second);
  parent_[std::max(x, y)] = std::min(x, y);
}

void Planner::ChooseLayouts() {
  auto in_registers = [this](const ISlice& slice) {
    const Home& home = plan_->HomeOf(slice);
    return home.registers() && (home.fragment.rows > 1 || home.fragment.cols > 1);
  };
  int last = -1;
  std::vector<std::pair<std::string, Wish>> wishes;
  for (const Use& use : uses_) {
    if (use.position == last) continue;
    last = use.position;
    const OpRow& row = OpRowOf(use.iop);
    std::string first;
    std::vector<ISlice> hold;
    hold.reserve(8);
    for (int operand = 0; operand <= static_cast<int>(use.iop->sources.size()); ++operand) {
      const ISlice* slice = OperandOf(use.iop, operand, &hold);
      if (slice == nullptr || (row.joined >> operand & 1) == 0 || !in_registers(*slice)) continue;
      std::string name((*slice)->pointer->name);
      if (!first.empty()) Join(first, name);
      first = name;
    }
    if (row.wishes == nullptr) continue;
    for (const Wish& wish : row.wishes(use.iop, plan_->graph_, plan_->arch_)) {
      const ISlice* slice = OperandOf(use.iop, wish.operand, &hold);
      if (slice != nullptr && in_registers(*slice)) wishes.emplace_back(std::string((*slice)->pointer->name), wish);
    }
  }
  std::map<std::string, Class> classes;
  for (const auto& [name, home] : plan_->homes_) {
    if (home.registers()) classes[Root(name)].members.push_back(name);
  }
  for (bool must : {true, false}) {
    for (const auto& [name, wish] : wishes) {
      Class& one = classes[Root(name)];
      if (wish.must == must && !one.fixed) one.fixed = wish.layout;
    }
    for (auto& [root, one] : classes) {
      auto asked = asked_.find(root);
      if (asked != asked_.end() && !one.fixed) one.fixed = asked->second;
    }
  }
  for (const Use& use : uses_) {
    if (use.operand < 0 || !plan_->HomeOf(use.slice).registers()) continue;
    Class& one = classes[Root(use.pointer())];
    one.works.push_back(
        {use.slice->rows, use.slice->cols, use.write ? Work::Meets::kNo : MeetsOf(use.iop), use.times()});
    if (use.iop->op != "move") continue;
    const ISlice other = use.write ? use.iop->sources[0] : use.iop->targets[0];
    if (plan_->HomeOf(other).registers()) continue;
    Access access = plan_->MoveOf(other, plan_->scope_, StatedAlign(use.iop));
    access.times = use.times();
    one.accesses.push_back(access);
  }
  for (auto& [root, one] : classes) {
    Layout layout = one.fixed ? *one.fixed : ChooseLayout(one.accesses, one.works);
    for (const std::string& name : one.members) {
      Home& home = plan_->homes_[name];
      home.fragment = Fragment(layout, home.fragment.rows, home.fragment.cols);
      home.class_layout = layout;
    }
  }
}

void Planner::FindSpared() {
  for (const auto& [name, uses] : by_pointer_) {
    if (HoldsBesideBoxes(uses)) plan_->spares_[name] = BoxesOfAllReads(uses);
  }
}

void Planner::Place() {
  int64_t sram = 0, scratch = 0;
  for (const IPointer& pointer : plan_->graph_->pointers) {
    Home& home = plan_->homes_[std::string(pointer->name)];
    if (home.kind == Home::Kind::kSram) {
      if (home.atoms) sram = RoundUp(sram, kAtomAlign);
      home.at = sram;
      sram = RoundUp(sram + BytesOf(pointer), kSharedAlign);
    } else if (home.kind == Home::Kind::kScratch && !by_pointer_[std::string(pointer->name)].empty()) {
      home.at = scratch;
      scratch = RoundUp(scratch + BytesOf(pointer), kSharedAlign);
    }
  }
  plan_->sram_bytes_ = sram;
  plan_->scratch_bytes_ = scratch;
}

}  // namespace uir::codegen::cuda
