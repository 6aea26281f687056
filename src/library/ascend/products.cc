// SPDX-License-Identifier: Apache-2.0
#include "library/ascend/products.h"

#include <tvm/ffi/error.h>

#include <array>

namespace uir::library::ascend {
namespace {

/*! A batch dimension: its extent, and the strides of a, b and out; 0 repeats. */
struct Axis {
  int64_t extent;
  std::array<int64_t, 3> strides;

  /*! Whether this one and the next are one dimension for every operand. */
  bool Joins(const Axis& inner) const {
    for (int i = 0; i < 3; ++i) {
      if (strides[i] != inner.strides[i] * inner.extent) return false;
    }
    return true;
  }
};

/*! The batch dimensions, joined where they lie so that they are one for all operands. */
std::vector<Axis> BatchOf(const MatmulAttrs& attrs) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < attrs.batch.size(); ++d) {
    Axis axis{attrs.batch[d], {attrs.a.strides[d], attrs.b.strides[d], attrs.out.strides[d]}};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().Joins(axis)) {
      axis.extent *= axes.back().extent;
      axes.pop_back();
    }
    axes.push_back(axis);
  }
  return axes;
}

Operand OperandOf(const MatmulAttrs& attrs, Role role, const std::vector<Axis>& axes,
                  const std::array<int64_t, 3>& shift) {
  if (role == Role::kBias) return {role, {attrs.n}, {1}, 0};
  const int position = role == Role::kA ? 0 : role == Role::kB ? 1 : 2;
  const OperandView& view = position == 0 ? attrs.a : position == 1 ? attrs.b : attrs.out;
  const int64_t rows = role == Role::kB ? attrs.k : attrs.m, columns = role == Role::kA ? attrs.k : attrs.n;
  Operand made{role, {}, {}, view.offset + shift[position]};
  for (const Axis& axis : axes) made.shape.push_back(axis.strides[position] == 0 ? 1 : axis.extent);
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

[[noreturn]] void Refuse(const char* op, const char* what) {
  TVM_FFI_THROW(ValueError) << "Library operator " << op << " on Ascend: " << what << ".\n"
                            << "  limit:  one bias or residual\n"
                            << "  remedy: compile the model for this target";
  TVM_FFI_UNREACHABLE();
}

void CheckEpilogue(const Epilogue& epilogue, bool packed, const char* op) {
  if (packed) Refuse(op, "a weight that was packed for the CPU");
  if (epilogue.alpha != 1.0) Refuse(op, "a factor");
  if (epilogue.activation != Activation::kNone) Refuse(op, "an activation");
  if (epilogue.bias && epilogue.residual != Residual::kNone) Refuse(op, "a bias and a residual");
}

}  // namespace

void CheckConvolution(const Conv2dAttrs& attrs) {
  CheckEpilogue(attrs.epilogue, attrs.packed, "conv2d");
  if (attrs.epilogue.residual != Residual::kNone) Refuse("conv2d", "a residual");
  if (attrs.padding[0] != attrs.padding[2] || attrs.padding[1] != attrs.padding[3]) {
    Refuse("conv2d", "opposite sides padded differently");
  }
}

std::vector<Product> Products(const MatmulAttrs& attrs) {
  CheckEpilogue(attrs.epilogue, attrs.packed, "matmul");
  const std::vector<Axis> axes = BatchOf(attrs);
  const bool residual = attrs.epilogue.residual != Residual::kNone;
  const auto call = [&](Function function, const std::vector<Axis>& batch, const std::array<int64_t, 3>& shift) {
    Product product{function, {}};
    if (attrs.epilogue.bias) product.operands.push_back(OperandOf(attrs, Role::kBias, batch, shift));
    if (residual) product.operands.push_back(OperandOf(attrs, Role::kResidual, batch, shift));
    for (Role role : {Role::kA, Role::kB, Role::kOut}) product.operands.push_back(OperandOf(attrs, role, batch, shift));
    return product;
  };
  if (!attrs.epilogue.bias && !residual) return {call(Function::kMatmul, axes, {})};
  if (axes.empty()) return {call(Function::kAddmm, axes, {})};
  std::vector<Product> calls;
  const std::vector<Axis> outer(axes.begin(), axes.end() - 1);
  std::vector<int64_t> index(outer.size(), 0);
  while (true) {
    std::array<int64_t, 3> shift{};
    for (size_t d = 0; d < outer.size(); ++d) {
      for (int i = 0; i < 3; ++i) shift[i] += index[d] * outer[d].strides[i];
    }
    calls.push_back(call(Function::kBaddbmm, {axes.back()}, shift));
    size_t d = outer.size();
    while (d > 0 && ++index[d - 1] == outer[d - 1].extent) index[--d] = 0;
    if (d == 0) return calls;
  }
}

}  // namespace uir::library::ascend
