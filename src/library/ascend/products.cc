// SPDX-License-Identifier: Apache-2.0
#include "library/ascend/products.h"

#include <tvm/ffi/error.h>

#include <array>

namespace uir::library::ascend {
namespace {

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
  const std::vector<BatchAxis> axes = BatchOf(attrs);
  const bool residual = attrs.epilogue.residual != Residual::kNone;
  const auto call = [&](Function function, const std::vector<BatchAxis>& batch, const std::array<int64_t, 3>& shift) {
    Product product{function, {}};
    if (attrs.epilogue.bias) product.operands.push_back(OperandOf(attrs, Role::kBias, batch, shift));
    if (residual) product.operands.push_back(OperandOf(attrs, Role::kResidual, batch, shift));
    for (Role role : {Role::kA, Role::kB, Role::kOut}) product.operands.push_back(OperandOf(attrs, role, batch, shift));
    return product;
  };
  if (!attrs.epilogue.bias && !residual) return {call(Function::kMatmul, axes, {})};
  if (axes.empty()) return {call(Function::kAddmm, axes, {})};
  std::vector<Product> calls;
  const std::vector<BatchAxis> outer(axes.begin(), axes.end() - 1);
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
