# SPDX-License-Identifier: Apache-2.0
"""Functions in phases: all units run the first, then the next, each scheduled by a recipe of its own.

Before::

    for i, k in grid(M, N): S[i] += X[i, k]
    for i in M:             Y += S[i]

After, with S in dram::

    for p in units: rows of S        # uir.parallel, as the recipe of the first phase has it
    for p in units: Y                # uir.parallel, as that of the second has it

A phase takes as many of the function's statements as a recipe fits.  Units that have nothing in a phase pass
it by, so that all have the same number.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import attrs
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from tvm_ffi.structural import structural_map

from ..errors import CapacityError, ScheduleError
from ..igraph import HardwareModel
from .annotations import GROUP, PARALLEL, parallel_value, parse_parallel
from .blocks import collect, prim_func
from .decisions import OWN, Decisions
from .make_tir import function, sequence
from .prepare import inline_producers
from .rooted import ROOT

#: Statements of a function at most: a phase is looked for from each of them to each later one.
MOST_STATEMENTS = 24

log = logging.getLogger(__name__)


class _EachAlone(Decisions):
    """The recipes' own decisions, but no unit shares what it does with others."""

    def fork(self, name: str, candidates: Sequence[int], default: int) -> int:
        """The form in which units share nothing, where there is one."""
        alone = {"row_sharing": (1, 0), "shared_columns": (0,), "staged": (0,)}.get(name, ())
        return next((form for form in alone if form in candidates), default)


@attrs.frozen
class _Phase:
    """A scheduled part: its loop over units, how many of them there are, and the buffers of its own."""

    loop: Any
    groups: int
    units: int
    allocated: tuple[Any, ...]

    @property
    def total(self) -> int:
        """How many units it is for."""
        return self.groups * self.units


def statements(func: tirx.PrimFunc) -> list[Any]:
    """What stands in the root block, in order."""
    root = func.body.block
    return list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]


def schedule_phases(
    sch: Schedule, hw: HardwareModel, recipes: Sequence[ModuleType], decisions: Decisions = OWN
) -> Schedule:
    """Cut a function into phases, each of which one of the recipes fits.

    Parameters
    ----------
    recipes : sequence of modules
        What a phase may be scheduled by, in this order.

    Raises
    ------
    ScheduleError
        There is one statement only, or too many; no recipe fits some statement; the units of a phase share
        their work.
    """
    inline_producers(sch)
    func = prim_func(sch)
    parts = statements(func)
    if not 2 <= len(parts) <= MOST_STATEMENTS:
        raise ScheduleError(
            "The function is not cut into phases.",
            need="several statements in the root block, each with a result of its own",
            limit=f"2 to {MOST_STATEMENTS}, not {len(parts)}",
            remedy="another recipe fits this function",
        )
    phases: list[_Phase] = []
    first = 0
    while first < len(parts):
        phase, first = _longest(func, parts, first, hw, recipes)
        phases.append(phase)
    return decisions.restart(_one_after_the_other(func, phases))


def _longest(
    func: tirx.PrimFunc, parts: Sequence[Any], first: int, hw: HardwareModel, recipes: Sequence[ModuleType]
) -> tuple[_Phase, int]:
    """The phase of as many statements as a recipe fits, and where the next one begins."""
    for last in range(len(parts), first, -1):
        if last - first == len(parts):
            continue  # all of it: that is no phase
        phase = _scheduled(_part(func, parts, first, last), hw, recipes)
        if phase is not None:
            return phase, last
    block = collect(parts[first], SBlock)[0]
    raise ScheduleError(
        f"No recipe fits block {block.name_hint!r} alone.",
        need="phases that run on all units",
        remedy="leave the function to the scalar fallback",
    )


def _part(func: tirx.PrimFunc, parts: Sequence[Any], first: int, last: int) -> tirx.PrimFunc:
    """Some statements as a function: what others touch too is a parameter."""
    here = _touched(parts[first:last])
    elsewhere = _touched([*parts[:first], *parts[last:]])
    held = list(func.body.block.alloc_buffers)
    params = [p for p in func.params if p in here] + [b for b in held if b in here and b in elsewhere]
    inner = [b for b in held if b in here and b not in elsewhere]
    root = SBlock([], [], [], ROOT, sequence(parts[first:last]), None, inner)
    return tirx.PrimFunc(params, SBlockRealize([], True, root))


def _touched(stmts: Sequence[Any]) -> set[Any]:
    found: set[Any] = set()
    for stmt in stmts:
        found |= {load.source for load in collect(stmt, TensorLoad)}
        found |= {store.buffer for store in collect(stmt, tirx.BufferStore)}
    return found


def _scheduled(func: tirx.PrimFunc, hw: HardwareModel, recipes: Sequence[ModuleType]) -> _Phase | None:
    """The phase that the first recipe that fits makes of a function."""
    decisions = _EachAlone()
    for recipe in recipes:
        sch = decisions.restart(func)
        try:
            if not recipe.matches(sch):
                continue
            sch = recipe.schedule(sch, hw, decisions) or sch
            return _phase(prim_func(sch))
        except CapacityError:
            raise
        except (ScheduleError, TVMScheduleError) as error:
            log.debug("recipe %s fits no phase: %s", recipe.HERO, error)
    return None


def _phase(func: tirx.PrimFunc) -> _Phase:
    """What a recipe made: one loop over units around everything."""
    (loop, *others) = statements(func)
    if others or PARALLEL not in getattr(loop, "annotations", {}) or GROUP in loop.annotations:
        raise ScheduleError(
            "The units of a phase share their work.",
            need="one loop over units, each of which works by itself",
            remedy="another recipe fits this function",
        )
    groups, units = parse_parallel(loop.annotations[PARALLEL], int(loop.extent))
    return _Phase(loop, groups, units, tuple(func.body.block.alloc_buffers))


def _one_after_the_other(func: tirx.PrimFunc, phases: Sequence[_Phase]) -> tirx.PrimFunc:
    """The function of all phases, for the same units."""
    units = max(phase.units for phase in phases)
    groups = max(-(-phase.total // units) for phase in phases)
    inner = {buffer for phase in phases for buffer in phase.allocated}
    shared = [buffer for buffer in func.body.block.alloc_buffers if buffer not in inner]
    held = [buffer for phase in phases for buffer in phase.allocated]
    touched = _touched([phase.loop for phase in phases])
    body = sequence([_for_units(phase, groups, units) for phase in phases])
    return function(func, body, [*(buffer for buffer in shared if buffer in touched), *held])


def _for_units(phase: _Phase, groups: int, units: int) -> Any:
    """The loop of a phase over so many units, of which the last ones do nothing."""
    loop, total = phase.loop, groups * units
    annotations = {**dict(loop.annotations), PARALLEL: parallel_value(groups, units)}
    inside = loop.loop_var < loop.extent

    def realize(node: SBlockRealize) -> SBlockRealize:
        always = isinstance(node.predicate, tirx.IntImm) and node.predicate.value
        predicate = inside if always else tirx.And(inside, node.predicate)
        return SBlockRealize(list(node.iter_values), predicate, node.block)

    body = loop.body if total == phase.total else structural_map(loop.body, (SBlockRealize, realize))
    extent = tirx.IntImm(str(loop.loop_var.ty.dtype), total)
    return tirx.For(loop.loop_var, loop.min, extent, loop.kind, body, annotations=annotations)
