# SPDX-License-Identifier: Apache-2.0
"""TVM's split of a loop, without a solver where numbers say that a predicate is needed.

Where factors make more iterations than a loop has, TVM's split guards its blocks by a predicate, after it has
asked a solver (Z3) whether that always holds; a solver takes some milliseconds to begin with, up to half of
what a schedule takes.  Where factors are numbers it is not needed: there are too many iterations, or there
are for some sizes, and then nothing can be proved for all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule.instruction import Instruction
from tvm.sym import Analyzer
from tvm.tirx.analysis import undefined_vars

from .make_tir import guarded, loop_like, outermost_changed


def split(sch: Schedule, loop: Any, factors: Sequence[Any]) -> list[Any]:
    """What ``sch.split(loop, factors)`` makes: the same loops, predicates and trace.

    Before::

        for i in 100: block(i)

    After, with ``factors=[None, 64]``::

        for i0, i1 in grid(2, 64): where(i0 * 64 + i1 < 100) block(i0 * 64 + i1)

    Parameters
    ----------
    loop : LoopRV
    factors : sequence of int, ExprRV or None
        As ``Schedule.split`` takes them: one may be None, and follows from the others.

    Raises
    ------
    tvm.s_tir.schedule.ScheduleError
        What TVM's split refuses.
    """
    whole = sch.get(loop)
    bounded = _bounded(whole) if _too_many(sch, whole, factors) else None
    if bounded is None:
        return list(sch.split(loop, factors))
    sch.state.replace(sch.get_sref(loop), bounded)
    made = list(sch.split(loop, factors, disable_predication=True))
    _tell_as_guarded(sch)
    return made


def _too_many(sch: Schedule, loop: tirx.For, factors: Sequence[Any]) -> bool:
    """Whether the factors make more iterations than the loop has, for some sizes where those are open."""
    if loop.annotations or loop.thread_binding is not None or not _is_zero(loop.min):
        return False
    known = [_number(sch, factor) for factor in factors if factor is not None]
    inferred = len(factors) - len(known)
    if not all(known) or inferred > 1:
        return False
    made = math.prod(number or 0 for number in known)
    if isinstance(loop.extent, tirx.IntImm):
        extent = int(loop.extent)
        return (made * -(-extent // made) if inferred else made) > extent
    return bool(inferred) and any(extent % made for extent in _some_extents(loop.extent))


def _some_extents(extent: Any) -> Iterator[int]:
    """What an open extent is where all sizes are one, and where all are two."""
    sizes = undefined_vars(extent)
    for number in (1, 2):
        analyzer = Analyzer()
        for size in sizes:
            analyzer.bind(size, tirx.const(number, str(size.ty.dtype)))
        found = analyzer.simplify(extent)
        if isinstance(found, tirx.IntImm) and int(found) > 0:
            yield int(found)


def _is_zero(value: Any) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == 0


def _number(sch: Schedule, factor: Any) -> int | None:
    """A factor as a number; None where it is none, or none that a loop can have."""
    value = factor if isinstance(factor, int) else sch.get(factor)
    number = int(value) if isinstance(value, int | tirx.IntImm) else 0
    return number if number > 0 else None


def _bounded(loop: tirx.For) -> tirx.For | None:
    """The loop with what TVM appends to the predicates of its blocks, in terms of its own variable."""
    condition = tirx.LT(loop.loop_var, loop.extent)
    body = outermost_changed(loop.body, lambda realize: guarded(realize, condition))
    return None if body is None else loop_like(loop, body)


def _tell_as_guarded(sch: Schedule) -> None:
    """Let the trace say TVM's split, of which it is what was made."""
    trace = sch.trace
    if trace is None:
        return
    done = trace.pop()
    kept, _ = done.attrs
    trace.append(Instruction(done.kind, done.inputs, [kept, False], done.outputs))
