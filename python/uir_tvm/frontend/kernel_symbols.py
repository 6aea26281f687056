# SPDX-License-Identifier: Apache-2.0
"""Kernels with symbols in their buffers' shapes, for numbers in the symbols' place."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, tirx

from ..bound_kernel import bound_kernel, symbols_in
from .relax_view import integers, op_name, shape_of


def with_bound_kernels(mod: tvm.IRModule) -> tvm.IRModule:
    """A module whose kernels have no symbols: a copy of each for the shapes that it is called with.

    Parameters
    ----------
    mod : tvm.IRModule
        Its ``main`` has no symbols.
    """
    binder = _Kernels(mod)
    main = binder.visit_expr(mod["main"])
    return binder.module(main) if binder.made else mod


@relax.expr_functor.mutator
class _Kernels(relax.PyExprMutator):
    """Calls of kernels with symbols become calls of copies without."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self._mod = mod
        self.made: dict[tuple[str, tuple[int, ...]], tvm.ir.GlobalVar] = {}

    def visit_call_(self, call: tvm.ir.Call) -> Any:
        call = super().visit_call_(call)
        if not op_name(call).startswith("call_tir"):
            return call
        variable = call.args[0]
        func = self._mod[variable.name_hint] if isinstance(variable, tvm.ir.GlobalVar) else None
        if not isinstance(func, tirx.PrimFunc):
            return call
        numbers = _numbers(func, call)
        if not numbers:
            return call
        key = variable.name_hint, tuple(int(value) for value in numbers.values())
        if key not in self.made:
            name = "_".join([key[0], *map(str, key[1])])
            self.made[key] = self.builder_.add_func(bound_kernel(func, numbers), name)
        return relax.Call(call.op, [self.made[key], call.args[1]], call.attrs, call.ty_args)

    def module(self, main: relax.Function) -> tvm.IRModule:
        """The module with the copies, without what has symbols left."""
        made = self.builder_.get()
        kept = {
            variable: function
            for variable, function in made.functions_items()
            if variable.name_hint != "main"
            and not (isinstance(function, tirx.PrimFunc) and symbols_in(function))
        }
        return tvm.IRModule({**kept, self._mod.get_global_var("main"): main}, attrs=self._mod.attrs)


def _numbers(func: tirx.PrimFunc, call: tvm.ir.Call) -> dict[Any, tirx.IntImm]:
    """What a call says of a kernel's symbols, and of its parameters that are numbers."""
    fields = list(call.args[1].fields) if isinstance(call.args[1], tvm.ir.Tuple) else [call.args[1]]
    (result,) = call.ty_args
    results = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    inplace = op_name(call).startswith("call_tir_inplace")
    shapes = [shape_of(field) for field in fields]
    shapes += [] if inplace else [_shape_of_type(each) for each in results]
    numbers: dict[Any, tirx.IntImm] = {}
    buffers = [param for param in func.params if isinstance(param, tirx.Buffer)]
    for buffer, shape in zip(buffers, shapes, strict=False):
        for size, known in zip(buffer.shape, shape or (), strict=False):
            if isinstance(size, tirx.Var):
                numbers[size] = tirx.IntImm(size.ty.dtype, int(known))
    scalars = [param for param in func.params if not isinstance(param, tirx.Buffer)]
    given = list(call.args[2].values) if len(call.args) > 2 else []
    for param, value in zip(scalars, given, strict=False):
        if isinstance(value, tirx.IntImm):
            numbers[param] = tirx.IntImm(param.ty.dtype, int(value))
    return numbers


def _shape_of_type(type_: Any) -> tuple[int, ...] | None:
    shape = getattr(type_, "shape", None)
    return integers(shape) if isinstance(shape, relax.ShapeExpr) else None
