# SPDX-License-Identifier: Apache-2.0
"""Where recipes begin: which functions can be scheduled, and in what form they get them."""

from __future__ import annotations

import tvm
from tvm import tirx
from tvm_ffi.structural import WalkResult, structural_walk

from ..errors import IGraphError, OpaqueFunctionError, ScheduleError
from ..igraph import HardwareModel
from ..igraph.tir_sizes import sizes_of
from .annotations import PARALLEL
from .blocks import collect
from .continued_reductions import reduce_apart
from .derived_dims import with_derived_dims
from .joined_sizes import join_sizes
from .rooted import rooted
from .tile_facts import space_of
from .wide_values import widen_values


def is_scheduled(func: tirx.PrimFunc) -> bool:
    """Whether a loop carries the annotation of `map_to_units`."""
    found = False

    def visit(loop: tirx.For) -> WalkResult:
        nonlocal found
        found = found or PARALLEL in loop.annotations
        return WalkResult.SKIP if found else WalkResult.ADVANCE

    structural_walk(func.body, (tirx.For, visit), order="pre")
    return found


def begin(func: tirx.PrimFunc, hw: HardwareModel) -> tirx.PrimFunc:
    """What recipes begin from: under a root, open dimensions joined, reductions apart from what they update.

    Inner dimensions that are expressions are sizes (`derived_dims`).  Narrow floats are computed with as the
    hardware wants it (`widen_values`).
    """
    func = with_derived_dims(join_sizes(reduce_apart(rooted(func))))
    return widen_values(func) if space_of(hw).wide_values else func


def check_schedulable(func: tirx.PrimFunc) -> None:
    """Refuse what no recipe can schedule: shapes that are neither numbers nor sizes, functions without blocks
    or with blocks that store nothing themselves (a sort that is called).

    Raises
    ------
    ScheduleError
        It is one of these.
    """
    where = str((func.attrs or {}).get("global_symbol", "main"))
    try:
        sizes_of(func)
    except IGraphError as error:
        raise ScheduleError(error.what, where=where, need=error.need, remedy=error.remedy) from error
    *blocks, _root = collect(rooted(func).body, tvm.s_tir.SBlock)
    if not blocks or not all(collect(block.body, tirx.BufferStore) for block in blocks):
        calls = collect(func.body, tvm.ir.Call)
        names = [str(call.args[0].value) for call in calls if _is_external(call)]
        raise OpaqueFunctionError(
            "The function is opaque: what it does is not in blocks.",
            where=where,
            need="blocks over static loops",
            limit=f"calls of {', '.join(dict.fromkeys(names))}" if names else "",
            remedy="write it as S-TIR blocks, or let TVM's own lowering take it",
        )


def _is_external(call: tvm.ir.Call) -> bool:
    """Whether it calls a function by its name."""
    return (
        "call" in str(getattr(call.op, "name", ""))
        and bool(call.args)
        and isinstance(call.args[0], tvm.ir.StringImm)
    )
