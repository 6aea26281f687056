// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/packed.h"

#include <algorithm>
#include <set>
#include <vector>

#include "codegen/attributes.h"
#include "codegen/uses.h"

namespace uir::codegen::bang {

namespace {

bool Same(const Affine& a, const Affine& b) {
  const Affine distance = a - b;
  return distance->terms.empty() && distance->constant == 0;
}

/*! \brief The side in global memory of a move between that and reg; nullptr for every other iOp. */
const ISliceNode* FarSide(const IOp& iop, const ISlice& near) {
  if (iop->op != "move" || PadOf(iop)) return nullptr;
  const ISlice& target = iop->targets[0];
  const ISlice& far = target.same_as(near) ? iop->sources[0] : target;
  return far->pointer->level == "dram" ? far.get() : nullptr;
}

/*! \brief Whether sizes alone decide an expression. */
bool OfSizes(const Affine& expr, const std::set<std::string>& sizes) {
  return std::all_of(expr->terms.begin(), expr->terms.end(),
                     [&](const Term& term) { return term->kind == "var" && sizes.count(std::string(term->var)) > 0; });
}

/*! \brief Whether a slice is a tile of rows of one open length, at a multiple of its own size. */
bool IsTile(const ISlice& slice, const Scope& scope, const std::set<std::string>& sizes) {
  if (slice->OpenStrides() || slice->rows < 2 || slice->col_stride != 1 || slice->row_stride != slice->cols)
    return false;
  if (slice->row_begin || slice->col_begin || !slice->col_end) return false;
  const Affine end = slice->col_end.value();
  const Range range = scope.Of(end);
  return range.low >= 0 && range.high <= slice->cols && !range.Constant() && OfSizes(end, sizes) &&
         scope.space().ClassOf(slice->offset).Divisor() % static_cast<uint64_t>(slice->rows * slice->cols) == 0;
}

}  // namespace

std::map<std::string, Affine> PackedPitches(const tiles::Plan& plan) {
  const Scope scope = ScopeOf(plan.graph());
  std::set<std::string> sizes;
  for (const Size& size : plan.graph()->sizes) sizes.insert(std::string(size->name));
  std::map<std::string, Affine> packed;
  for (const auto& [name, uses] : ByPointer(plan.uses())) {
    const ISlice& first = uses[0]->slice;
    if (!plan.places().count(name) || !IsTile(first, scope, sizes)) continue;
    const Affine pitch = first->col_end.value();
    bool runs = false;
    const bool all = std::all_of(uses.begin(), uses.end(), [&](const Use* use) {
      const ISliceNode* far = FarSide(use->iop, use->slice);
      if (far == nullptr || !IsTile(use->slice, scope, sizes) || !Same(use->slice->col_end.value(), pitch))
        return false;
      runs = runs || (far->row_pitch && Same(far->row_pitch.value(), pitch));
      return use->slice->rows == first->rows && use->slice->cols == first->cols;
    });
    if (all && runs) packed.emplace(name, pitch);
  }
  return packed;
}

}  // namespace uir::codegen::bang
