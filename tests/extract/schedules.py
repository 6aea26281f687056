# SPDX-License-Identifier: Apache-2.0
"""Functions, and schedules of them by stock instructions in the form that extraction reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te
from tvm.s_tir import Schedule
from uir_tvm.schedule.annotations import LOOP, PARALLEL


def prim(outputs: Callable[..., Any], *shapes: tuple[Sequence[int], str]) -> Any:
    """The PrimFunc of a te expression over placeholders ``a0, a1, ...``."""
    inputs = [te.placeholder(tuple(shape), dtype, f"a{k}") for k, (shape, dtype) in enumerate(shapes)]
    result = outputs(*inputs)
    results = list(result) if isinstance(result, list | tuple) else [result]
    return te.create_prim_func([*inputs, *results])


def map_rows(
    func: Any,
    block: str,
    units: int,
    rows: int,
    cols: int | None = None,
    *,
    groups: int | None = None,
    local: Sequence[str] = (),
    fuse: int = 1,
) -> Any:
    """Map a block: its first ``fuse`` loops, fused, are cut into ``units`` x serial x ``rows``.

    ``cols`` cuts the last loop, with a serial loop outside of the tile.  ``local`` blocks (consumers
    before producers) are computed at the innermost serial loop, into reg.
    """
    sch = Schedule(func)
    target = sch.get_sblock(block)
    loops = sch.get_loops(target)
    outer = sch.fuse(*loops[:fuse]) if fuse > 1 else loops[0]
    pid, serial, inner = sch.split(outer, [units, None, rows])
    sch.annotate(pid, PARALLEL, f"{groups or units},{units // (groups or units)}")
    sch.annotate(serial, LOOP, 1)
    at = serial
    if cols is not None:
        outer_cols, inner_cols = sch.split(sch.get_loops(target)[-1], [None, cols])
        sch.reorder(outer_cols, inner, inner_cols)
        sch.annotate(outer_cols, LOOP, 1)
        at = outer_cols
    for name in local:
        producer = sch.get_sblock(name)
        sch.compute_at(producer, at)
        sch.set_scope(producer, 0, "local")
    return sch.mod["main"]
