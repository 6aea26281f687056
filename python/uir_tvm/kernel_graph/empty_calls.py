# SPDX-License-Identifier: Apache-2.0
"""Kernels that are called for tensors without elements: not called."""

from __future__ import annotations

import tvm
from tvm import relax

from ..frontend.relax_view import integers, op_name


def empty_tensor(shape: tuple[int, ...], dtype: str) -> tvm.ir.Expr:
    """Memory of no bytes: TVM stores no constant without elements."""
    return relax.op.builtin.alloc_tensor(relax.ShapeExpr(shape), dtype, tvm.tirx.IntImm("int64", 0))


def without_empty_calls(mod: tvm.IRModule) -> tvm.IRModule:
    """A module that calls kernels, without the calls all of whose results have no elements."""
    return _Without(mod).run()


@relax.expr_functor.mutator
class _Without(relax.PyExprMutator):  # type: ignore[misc]
    def run(self) -> tvm.IRModule:
        for gvar, function in self.builder_.get().functions_items():
            if isinstance(function, relax.Function):
                self.builder_.update_func(gvar, self.visit_expr(function))
        return self.builder_.get()

    def visit_call_(self, call: tvm.ir.Call) -> tvm.ir.Expr:
        """One call, or the empty tensors that it gives."""
        if op_name(call) not in ("call_tir", "call_dps_packed"):
            return super().visit_call_(call)
        one = not isinstance(call.ty, relax.TupleType)
        types = [call.ty] if one else list(call.ty.fields)
        shapes = [integers(type_.shape) if type_.shape is not None else None for type_ in types]
        if not types or any(shape is None or 0 not in shape for shape in shapes):
            return super().visit_call_(call)
        made = [
            self.builder_.emit(empty_tensor(shape, str(type_.dtype)))
            for shape, type_ in zip(shapes, types, strict=True)
            if shape is not None
        ]
        return made[0] if one else relax.Tuple(made)
