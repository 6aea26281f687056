# SPDX-License-Identifier: Apache-2.0
"""Functions in phases: all units run the first, then the next, each scheduled by a recipe of its own.

Before::

    for i, k in grid(M, N): S[i] += X[i, k]
    for i in M:             Y += S[i]

After, with S in dram::

    for p in units: rows of S        # uir.parallel, as the recipe of the first phase has it
    for p in units: Y                # uir.parallel, as that of the second has it

What a phase hands to the next lies in dram, behind a barrier of all units.  A phase takes as many of the
function's statements as a recipe fits.  Units that have nothing in a phase pass it by, so that all have the
same number.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import attrs
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.relax import op
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from tvm_ffi.structural import structural_map
from uir_tvm.bound_kernel import symbols_in
from uir_tvm.errors import CapacityError, RecipeError, ScheduleError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import GROUP, PARALLEL, parallel_value, parse_parallel
from uir_tvm.schedule.blocks import collect, leaf_blocks, prim_func
from uir_tvm.schedule.decisions import OWN, Answered, Decisions
from uir_tvm.schedule.make_tir import function, guarded, sequence
from uir_tvm.schedule.prepare import inline_producers
from uir_tvm.schedule.recipe import Form, Recipe
from uir_tvm.schedule.rooted import ROOT
from uir_tvm.schedules.demo import from_relax

#: Statements of a function at most: a phase is looked for from each of them to each later one.
MOST_STATEMENTS = 24

log = logging.getLogger(__name__)


#: Forks of other recipes, answered so that units share nothing, where that is possible.
ALONE: Form = {"row_sharing": (1, 0), "shared_columns": (0,), "staged": (0,)}


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


def matches(sch: Schedule) -> bool:
    """Several statements, with blocks in all of them."""
    return len(leaf_blocks(sch)) > 1 and len(statements(prim_func(sch))) > 1


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Each phase by the first recipe that fits it."""
    from . import RECIPES

    own = [recipe for recipe in RECIPES if not recipe.last_resort and recipe is not RECIPE]
    return schedule_phases(sch, hw, own, decisions)


def schedule_phases(
    sch: Schedule, hw: HardwareModel, recipes: Sequence[Recipe], decisions: Decisions = OWN
) -> Schedule:
    """Cut a function into phases, each of which one of the recipes fits.

    Parameters
    ----------
    recipes : sequence of Recipe
        What a phase may be scheduled by, in this order.

    Raises
    ------
    RecipeError
        There is one statement only, or too many; no recipe fits some statement; the units of a phase share
        their work.
    """
    if symbols_in(prim_func(sch)):
        raise RecipeError(
            "The number of units of a phase follows sizes that are open.",
            need="phases of as many units at every call",
        )
    inline_producers(sch)
    func = prim_func(sch)
    parts = statements(func)
    if not 2 <= len(parts) <= MOST_STATEMENTS:
        raise RecipeError(
            "The function is not cut into phases.",
            need="several statements in the root block, each with a result of its own",
            limit=f"2 to {MOST_STATEMENTS}, not {len(parts)}",
        )
    phases: list[_Phase] = []
    first = 0
    while first < len(parts):
        phase, first = _longest(func, parts, first, hw, recipes)
        phases.append(phase)
    return decisions.restart(_one_after_the_other(func, phases))


def _longest(
    func: tirx.PrimFunc, parts: Sequence[Any], first: int, hw: HardwareModel, recipes: Sequence[Recipe]
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


def _scheduled(func: tirx.PrimFunc, hw: HardwareModel, recipes: Sequence[Recipe]) -> _Phase | None:
    """The phase that the first recipe that fits makes of a function."""
    decisions = Answered(ALONE)
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
            log.debug("recipe %s fits no phase: %s", recipe.hero, error)
    return None


def _phase(func: tirx.PrimFunc) -> _Phase:
    """What a recipe made: one loop over units around everything."""
    (loop, *others) = statements(func)
    if others or PARALLEL not in getattr(loop, "annotations", {}) or GROUP in loop.annotations:
        raise RecipeError(
            "The units of a phase share their work.",
            need="one loop over units, each of which works by itself",
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
        return guarded(node, inside)

    body = loop.body if total == phase.total else structural_map(loop.body, (SBlockRealize, realize))
    extent = tirx.IntImm(str(loop.loop_var.ty.dtype), total)
    return tirx.For(loop.loop_var, loop.min, extent, loop.kind, body, annotations=annotations)


def example() -> Any:
    """Two reductions over different rows: the mean of every row, then of all rows."""

    return from_relax(
        lambda x: op.mean(op.mean(x, axis=-1), axis=0), [(60, 500)], lambda x: x.mean(-1).mean(0)
    )


RECIPE = Recipe(
    "phases",
    matches,
    schedule,
    example,
    reason="Parts that have no rows or tiles in common run one after the other, on all units.",
    stopgap=True,
)
