# SPDX-License-Identifier: Apache-2.0
"""Clean-up of a merged PrimFunc: strided readings become indices of their readers."""

from __future__ import annotations

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError


def inline_views(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Inline the blocks ``view*`` that `merge.reading` makes.

    Before: ``view[i, j] = a[j, i]; b[i, j] = view[i, j] + 1``.  After: ``b[i, j] = a[j, i] + 1``.
    A view that cannot be inlined stays: it is right, if slow.
    """
    schedule = Schedule(function, debug_mask="none", error_render_level="none")
    root = schedule.get_sblock("root")
    for block in schedule.get_child_blocks(root):
        if str(schedule.get(block).name_hint).startswith("view"):
            try:
                schedule.compute_inline(block)
            except ScheduleError:
                continue
    return schedule.mod["main"]
