# SPDX-License-Identifier: Apache-2.0
"""Clean-up of a merged PrimFunc: strided readings become indices of their readers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.schedule import ScheduleError
from tvm_ffi.structural import structural_map, structural_walk

#: How the names of the blocks begin that `merge.reading` makes.
VIEW = "view"


def inline_views(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Inline the blocks ``view*`` that `merge.reading` makes.

    Before: ``view[i, j] = a[j, i]; b[i, j] = view[i, j] + 1``.  After: ``b[i, j] = a[j, i] + 1``.
    A view that cannot be inlined stays: it is right, if slow. A function without views is not looked at:
    a whole operator of TVM's may describe its buffers in ways that no schedule takes.
    """
    if not _has_views(function):
        return function
    schedule = Schedule(function, debug_mask="none", error_render_level="none")
    root = schedule.get_sblock("root")
    for block in schedule.get_child_blocks(root):
        if str(schedule.get(block).name_hint).startswith(VIEW):
            try:
                schedule.compute_inline(block)
            except ScheduleError:
                continue
    return schedule.mod["main"]


def plain_layouts(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with buffers whose layouts speak of no size that their shapes have not.

    TVM's own operators leave variables there that nothing binds.
    """
    blocks: list[Any] = []
    structural_walk(function.body, (SBlock, blocks.append))
    buffers = [param for param in function.params if tirx.is_buffer_var(param)]
    buffers += [buffer for block in blocks for buffer in block.alloc_buffers]
    made = {
        buffer: tirx.decl_buffer(
            list(buffer.shape), str(buffer.dtype), buffer.name, scope=buffer.scope(), layout=None
        )
        for buffer in buffers
        if not _variables([buffer.layout]) <= _variables(buffer.shape)
    }
    if not made:
        return function
    body = structural_map(function.body, (tvm.ir.Var, lambda variable: made.get(variable, variable)))
    params = [made.get(param, param) for param in function.params]
    return tirx.PrimFunc(params, body, function.ret_type, function.attrs, function.span)


def _variables(parts: Iterable[Any]) -> set[Any]:
    found: dict[Any, None] = {}
    for part in parts:
        if part is not None:
            structural_walk(part, (tvm.ir.Var, found.setdefault))
    return set(found)


def _has_views(function: tirx.PrimFunc) -> bool:
    found: list[bool] = []
    structural_walk(
        function.body, [(SBlock, lambda block: found.append(str(block.name_hint).startswith(VIEW)))]
    )
    return any(found)
