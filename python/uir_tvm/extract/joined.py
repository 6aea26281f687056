# SPDX-License-Identifier: Apache-2.0
"""Parallel loops one after the other as one loop, for units that run the first to its end, then the next.

Before::

    for p in 8: T[...] = ...       # uir.parallel = "2,4"
    for q in 8: Y[...] = f(T)      # uir.parallel = "2,4"

After::

    for p in 8:                    # uir.parallel = "2,4"
      T[...] = ...
      Y[...] = f(T)                # q is p

What one unit makes and another reads lies in dram, and `synchronised` places the barriers of all units that
the order of the loops stands for.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm_ffi.structural import structural_map

from ..schedule.annotations import PARALLEL
from ..schedule.make_tir import changed


def joined(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with one parallel loop in the place of several that are for the same units.

    Itself where the root block holds anything but such loops: what that means the loop tree says.
    """
    realize = func.body
    if not isinstance(realize, SBlockRealize) or not isinstance(realize.block.body, tirx.SeqStmt):
        return func
    loops = list(realize.block.body.seq)
    if not all(isinstance(loop, tirx.For) and PARALLEL in loop.annotations for loop in loops):
        return func
    if not all(_same_units(loops[0], loop) for loop in loops[1:]):
        return func
    first = loops[0]
    body = tirx.SeqStmt([_with_variable(loop, first.loop_var) for loop in loops])
    whole = tirx.For(
        first.loop_var, first.min, first.extent, first.kind, body, annotations=dict(first.annotations)
    )
    block = changed(realize.block, body=whole)
    return func.with_body(SBlockRealize(realize.iter_values, realize.predicate, block))


def _same_units(one: Any, other: Any) -> bool:
    """Whether two loops run over the same units, with the same annotations."""
    return (
        _constants(one) == _constants(other) is not None
        and one.kind == other.kind
        and dict(one.annotations) == dict(other.annotations)
    )


def _constants(loop: Any) -> tuple[int, int] | None:
    """Where a loop begins and how often it runs; None where that is no number."""
    parts = (loop.min, loop.extent)
    if not all(isinstance(part, tirx.IntImm) for part in parts):
        return None
    return int(loop.min), int(loop.extent)


def _with_variable(loop: Any, variable: Any) -> Any:
    """The body of a loop with another variable in the place of the loop's."""
    own, dtype = loop.loop_var, loop.loop_var.ty.dtype
    if own.same_as(variable):
        return loop.body
    # a loop around a scalar counts in int32, those over TVM's shapes in int64
    value = variable if variable.ty.dtype == dtype else tirx.Cast(str(dtype), variable)
    return structural_map(loop.body, (tvm.ir.Var, lambda var: value if var.same_as(own) else var))
