// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/staged.h"

#include <algorithm>
#include <vector>

#include "igraph/parts.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Whether a term tells iterations apart: the place of an iteration in flight. */
bool IsOfLoop(const Affine& term) {
  const auto variables = term.Variables();
  return std::any_of(variables.begin(), variables.end(), [](const ffi::String& name) { return name != "pid"; });
}

/*! \brief Elements from one place of an iteration in flight to the next; 0 where there is one place. */
int64_t StepOf(const std::vector<Use>& uses, const std::string& pointer) {
  int64_t step = 0;
  for (const Use& use : uses) {
    if (use.pointer() != pointer) continue;
    for (const Term& term : Split(use.slice->offset, IsOfLoop).first->terms) step = std::max(step, term->coeff);
  }
  return step;
}

/*! \brief The greatest element of a slice, counted from the beginning of its place. */
int64_t LastOf(const ISlice& slice, int64_t step, const Scope& scope) {
  const Affine within = Split(slice->offset, IsOfLoop).second;
  const int64_t places = step > 0 ? within->constant / step * step : 0;
  return scope.Of(within).high - places + (slice->rows - 1) * slice->row_stride + (slice->cols - 1) * slice->col_stride;
}

/*! \brief Whether a slice's lines never reach over the end of the tile's lines. */
bool KeepsToLines(const ISlice& slice, const Scope& scope) {
  const bool by_rows = slice->col_stride == 1;
  if (!by_rows && slice->row_stride != 1) return false;
  const int64_t pitch = by_rows ? slice->row_stride : slice->col_stride;
  const int64_t length = by_rows ? slice->cols : slice->rows;
  if ((by_rows ? slice->rows : slice->cols) == 1) return true;
  const Range range = scope.Of(SplitMultiples(slice->offset, pitch).second);
  return range.low >= 0 && range.high + length <= pitch;
}

}  // namespace

bool IsFilled(const std::vector<Use>& uses, const Scope& scope, const ISlice& slice) {
  const std::string pointer(slice->pointer->name);
  const int64_t step = StepOf(uses, pointer);
  int64_t filled = -1;
  for (const Use& use : uses) {
    if (use.pointer() != pointer || !use.write) continue;
    if (use.iop->op != "move" || !BoxText(use.slice).empty()) return false;
    filled = std::max(filled, LastOf(use.slice, step, scope));
  }
  return KeepsToLines(slice, scope) && LastOf(slice, step, scope) <= filled;
}

}  // namespace uir::codegen::cuda
