# SPDX-License-Identifier: Apache-2.0
"""Kernels with symbols in the shapes of their buffers, for numbers in the symbols' place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map, structural_walk


def symbols_in(func: tirx.PrimFunc, outermost: bool = True) -> list[Any]:
    """The variables in the shapes of a kernel's parameters, in order; but for outermost axes, if need be."""
    found: dict[Any, None] = {}
    for buffer in filter(tirx.is_buffer_var, func.params):
        for size in buffer.shape if outermost else buffer.shape[1:]:
            if not isinstance(size, tirx.IntImm):
                structural_walk(size, (tvm.ir.Var, found.setdefault))
    return list(found)


def bound_kernel(func: tirx.PrimFunc, numbers: Mapping[Any, tirx.IntImm]) -> tirx.PrimFunc:
    """A kernel for numbers in the place of its symbols, and of parameters that are numbers."""
    analyzer = tvm.sym.Analyzer()

    def known(size: Any) -> Any:
        return analyzer.simplify(structural_map(size, (tvm.ir.Var, lambda var: numbers.get(var, var))))

    given: dict[Any, Any] = {}
    for param in func.params:
        if tirx.is_buffer_var(param):
            given[param] = tirx.decl_buffer(
                [known(size) for size in param.shape],
                param.dtype,
                param.name,
                strides=[known(step) for step in param.strides] or None,
                scope=param.scope(),
            )
        elif param in numbers:
            given[param] = numbers[param]
    return func.specialize(given)


def kernel_at(func: tirx.PrimFunc, sizes: Mapping[str, int]) -> tirx.PrimFunc:
    """A kernel for a number for each of its open sizes, and of its parameters that are numbers, by name."""
    plain = [param for param in func.params if not tirx.is_buffer_var(param)]
    variables = dict.fromkeys([*symbols_in(func), *plain])
    return bound_kernel(func, {v: tirx.IntImm(str(v.ty.dtype), sizes[str(v.name)]) for v in variables})
