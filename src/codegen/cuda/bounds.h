// SPDX-License-Identifier: Apache-2.0
// Which sides of a slice's valid box may cut anything off, whatever their texts are.
#pragma once

#include "codegen/scope.h"
#include "igraph/nodes.h"

namespace uir::codegen::cuda {

/*! \brief Whether a bound of a side of so many elements may cut any off. */
inline bool IsBinding(const ffi::Optional<Affine>& bound, int64_t length, bool end, const Scope& scope) {
  if (!bound) return false;
  const Range range = scope.Of(bound.value());
  return end ? range.low < length : range.high > 0;
}

/*! \brief The sides of a box that bound it. */
struct Bounds {
  bool rows = false, cols = false;

  Bounds() = default;
  Bounds(const ISlice& slice, const Scope& scope)
      : rows(IsBinding(slice->row_begin, slice->rows, false, scope) ||
             IsBinding(slice->row_end, slice->rows, true, scope)),
        cols(IsBinding(slice->col_begin, slice->cols, false, scope) ||
             IsBinding(slice->col_end, slice->cols, true, scope)) {}

  bool whole() const { return !rows && !cols; }
};

}  // namespace uir::codegen::cuda
