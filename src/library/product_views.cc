// SPDX-License-Identifier: Apache-2.0
#include "library/product_views.h"

namespace uir::library {

namespace ffi = tvm::ffi;

bool BatchAxis::Joins(const BatchAxis& inner) const {
  for (int i = 0; i < 3; ++i) {
    if (strides[i] != inner.strides[i] * inner.extent) return false;
  }
  return true;
}

std::vector<BatchAxis> BatchOf(const MatmulAttrs& attrs) {
  std::vector<BatchAxis> axes;
  for (size_t d = 0; d < attrs.batch.size(); ++d) {
    BatchAxis axis{attrs.batch[d], {attrs.a.strides[d], attrs.b.strides[d], attrs.out.strides[d]}};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().Joins(axis)) {
      axis.extent *= axes.back().extent;
      axes.pop_back();
    }
    axes.push_back(axis);
  }
  return axes;
}

Operand OperandOf(const MatmulAttrs& attrs, Role role, const std::vector<BatchAxis>& axes,
                  const std::array<int64_t, 3>& shift) {
  if (role == Role::kBias) return {role, {attrs.n}, {1}, 0};
  const int position = role == Role::kA ? 0 : role == Role::kB ? 1 : 2;
  const OperandView& view = position == 0 ? attrs.a : position == 1 ? attrs.b : attrs.out;
  const int64_t rows = role == Role::kB ? attrs.k : attrs.m, columns = role == Role::kA ? attrs.k : attrs.n;
  Operand made{role, {}, {}, view.offset + shift[position]};
  for (const BatchAxis& axis : axes) made.shape.push_back(axis.strides[position] == 0 ? 1 : axis.extent);
  // A dimension that repeats has no stride of its own: as if it were contiguous.
  int64_t inner = rows * columns;
  made.strides.resize(axes.size());
  for (size_t d = axes.size(); d-- > 0;) {
    const int64_t stride = axes[d].strides[position];
    made.strides[d] = stride == 0 ? inner : stride;
    inner *= made.shape[d];
  }
  made.shape.insert(made.shape.end(), {rows, columns});
  made.strides.insert(made.strides.end(), view.strides.end() - 2, view.strides.end());
  return made;
}

namespace {

ffi::Array<int64_t> Plain(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

ffi::Map<ffi::String, ffi::Any> Describe(const Operand& operand) {
  constexpr const char* kRoles[] = {"a", "b", "bias", "residual", "out"};
  ffi::Map<ffi::String, ffi::Any> row;
  row.Set("role", ffi::String(kRoles[static_cast<int>(operand.role)]));
  row.Set("shape", Plain(operand.shape));
  row.Set("strides", Plain(operand.strides));
  row.Set("offset", operand.offset);
  return row;
}

}  // namespace uir::library
