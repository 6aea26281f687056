# SPDX-License-Identifier: Apache-2.0
"""Dimensions of a kernel that are expressions in a model's sizes, as sizes of the kernel's own.

Before, with the size ``h``, which a call does not learn from any dimension::

    for i, j in grid((h - 1) // 2 + 1, 384): Y[i, j] = f(X[i, j])     # X, Y: ((h - 1) // 2 + 1, 384)

After, with ``size0`` of X's first dimension::

    for i, j in grid(size0, 384): Y[i, j] = f(X[i, j])                # X, Y: (size0, 384)

The second computes what the first does wherever it has a meaning; strides are products of numbers and sizes.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock
from tvm_ffi.structural import structural_map, structural_walk

from .merge import without_known_sizes

#: What dimensions are written with.
NODES = (tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)
NAME = "size"


def with_own_sizes(func: tirx.PrimFunc) -> tuple[tirx.PrimFunc, dict[str, Any]]:
    """The function with sizes of its own, and by their names what they are; itself where it needs none."""
    analyzer = tvm.sym.Analyzer()
    own: dict[str, Any] = {}
    for dim in sorted(_needed(func), key=_length, reverse=True):
        taken = {str(v.name) for v in _variables(func)} | own.keys()
        name = next(f"{NAME}{k}" for k in range(len(taken) + 1) if f"{NAME}{k}" not in taken)
        made = _replaced(func, analyzer.simplify(dim), tvm.ir.Var(name, str(dim.ty)), analyzer)
        own[name], func = dim, made
    return (without_known_sizes(func), own) if own else (func, own)


def _needed(func: tirx.PrimFunc) -> list[Any]:
    """Dimensions that are no number times one size, or are of a size that is no dimension by itself."""
    shapes = [list(param.shape) for param in func.params if tirx.is_buffer_var(param)]
    alone = {dim for shape in shapes for dim in shape if isinstance(dim, tvm.ir.Var)}
    found: list[Any] = []
    for shape in shapes:
        for place, dim in enumerate(shape):
            if isinstance(dim, tirx.IntImm | tvm.ir.Var):
                continue
            plain = _is_multiple(dim) or (place == 0 and not _divides(dim))
            known = plain and all(variable in alone for variable in _variables(dim))
            if not known and not any(tvm_ffi.structural_equal(dim, other) for other in found):
                found.append(dim)
    return found


def _is_multiple(dim: Any) -> bool:
    """Whether it is a number times a size."""
    if not isinstance(dim, tirx.Mul):
        return False
    kinds = {type(dim.a), type(dim.b)}
    return kinds == {tirx.IntImm, tvm.ir.Var}


def _divides(dim: Any) -> bool:
    """Whether it is not a sum of numbers times sizes."""
    found: list[Any] = []
    structural_walk(dim, [(kind, found.append) for kind in NODES[3:]])
    structural_walk(dim, (tirx.Mul, lambda node: found.append(node) if not _is_multiple(node) else None))
    return bool(found)


def _variables(expr: Any) -> list[Any]:
    found: dict[Any, None] = {}
    structural_walk(expr, (tvm.ir.Var, found.setdefault))
    return list(found)


def _length(expr: Any) -> int:
    return len(str(expr))


def _replaced(func: tirx.PrimFunc, dim: Any, own: Any, analyzer: Any) -> tirx.PrimFunc:
    """The function with a variable wherever it has an expression, in whatever form.

    TVM writes ``i < n + 1`` as ``i <= n``.
    """
    inside = set(_variables(dim))

    def changed(expr: Any) -> Any:
        """What is the dimension, or a number more or less, by the variable."""
        variables = set(_variables(expr))
        if variables == inside:
            rest = analyzer.simplify(expr - dim)
            return own + rest if isinstance(rest, tirx.IntImm) else expr
        return analyzer.simplify(expr) if variables == {own} else expr

    rules = [(kind, changed) for kind in NODES]
    blocks: list[Any] = []
    structural_walk(func.body, (SBlock, blocks.append))
    buffers = [param for param in func.params if tirx.is_buffer_var(param)]
    buffers += [buffer for block in blocks for buffer in block.alloc_buffers]
    made = {
        buffer: tirx.decl_buffer(
            [structural_map(size, rules) for size in buffer.shape],
            str(buffer.dtype),
            buffer.name,
            scope=buffer.scope(),
        )
        for buffer in buffers
        if any(inside & set(_variables(size)) for size in buffer.shape)
    }
    body = structural_map(func.body, [*rules, (tvm.ir.Var, lambda variable: made.get(variable, variable))])
    params = [made.get(param, param) for param in func.params]
    return tirx.PrimFunc(params, body, func.ret_type, func.attrs, func.span)
