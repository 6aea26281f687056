# SPDX-License-Identifier: Apache-2.0
"""The recipe that an unscheduled PrimFunc gets by itself."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from types import ModuleType

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from tvm_ffi.structural import WalkResult, structural_walk

from ..errors import CapacityError, ScheduleError
from ..igraph import HardwareModel
from .annotations import PARALLEL, VECTOR
from .blocks import collect, leaf_blocks
from .decisions import OWN, Choice, Decisions
from .hardware_of import model_of_target
from .in_place import reduce_apart
from .overlap import overlap
from .rooted import rooted
from .smaller import SHRINKS, with_tiles
from .space import space_of
from .wide_values import widen_values

log = logging.getLogger(__name__)

#: Attribute of a scheduled PrimFunc: the recipe that made it.
RECIPE = "uir.recipe"


def is_scheduled(func: tirx.PrimFunc) -> bool:
    """Whether a loop carries the annotation of `map_to_units`."""
    found = False

    def visit(loop: tirx.For) -> WalkResult:
        nonlocal found
        found = found or PARALLEL in loop.annotations
        return WalkResult.SKIP if found else WalkResult.ADVANCE

    structural_walk(func.body, (tirx.For, visit), order="pre")
    return found


def run_recipe(
    recipe: ModuleType, func: tirx.PrimFunc, hw: HardwareModel, decisions: Decisions = OWN
) -> Schedule | None:
    """The schedule that a recipe makes of a function; None where the function is not of its kind.

    Parameters
    ----------
    func : PrimFunc
        As `begin` gives it.

    Raises
    ------
    ScheduleError, tvm.s_tir.schedule.ScheduleError
        The recipe does not fit.
    """
    sch = Schedule(func, debug_mask="none", error_render_level="fast")
    if not recipe.matches(sch):
        return None
    sch = recipe.schedule(sch, hw, decisions) or sch
    stages = space_of(hw).stages
    if stages > 1:
        overlap(sch, stages, decisions)
    decide_vectors(sch, hw, decisions)
    return sch


def _run_with_room(recipe: ModuleType, func: tirx.PrimFunc, hw: HardwareModel) -> Schedule | None:
    """`run_recipe` with the largest tiles that a unit has room for."""
    for shrink in (1, *SHRINKS[:-1]):
        with contextlib.suppress(CapacityError):
            return run_recipe(recipe, func, with_tiles(hw, shrink, own_sizes=True))
    return run_recipe(recipe, func, with_tiles(hw, SHRINKS[-1], own_sizes=True))


def decide_vectors(sch: Schedule, hw: HardwareModel, decisions: Decisions) -> None:
    """Let the width of vectors be chosen where the kind of hardware has several that are worth trying."""
    own, factors = hw.vector_bytes, space_of(hw).vectors
    around = [loop for block in leaf_blocks(sch) for loop in sch.get_loops(block.rv)] if factors else []
    # one for each phase; by the statement, since blocks have it in common
    over_units = {sch.get(loop): loop for loop in around if PARALLEL in sch.get(loop).annotations}
    if not over_units:
        return
    chosen = decisions.choose(sch, "vector_bytes", [int(own * f) for f in factors], own)
    if isinstance(chosen, Choice):
        for loop in over_units.values():
            sch.annotate(loop, VECTOR, chosen.rv)


def begin(func: tirx.PrimFunc, hw: HardwareModel) -> tirx.PrimFunc:
    """What recipes begin from: under a root, reductions apart from what they update, wide values.

    Narrow floats are computed with as the hardware wants it (`widen_values`).
    """
    func = reduce_apart(rooted(func))
    return widen_values(func) if space_of(hw).wide_values else func


def check_schedulable(func: tirx.PrimFunc) -> None:
    """Refuse what no recipe can schedule: shapes that are not numbers, functions without blocks or with
    blocks that store nothing themselves (a sort that is called).

    Raises
    ------
    ScheduleError
        It is one of these.
    """
    where = str((func.attrs or {}).get("global_symbol", "main"))
    for param in func.params:
        if not tirx.buffer.is_buffer_var(param):
            continue
        for extent in param.ty.shape:
            if not isinstance(extent, tirx.IntImm):
                raise ScheduleError(
                    f"`{param.name}` has a dynamic dimension {extent}.",
                    where=where,
                    need="static shapes",
                    remedy="specialise the function for one shape",
                )
    *blocks, _root = collect(rooted(func).body, tvm.s_tir.SBlock)
    if not blocks or not all(collect(block.body, tirx.BufferStore) for block in blocks):
        calls = collect(func.body, tvm.ir.Call)
        names = [str(call.args[0].value) for call in calls if _is_external(call)]
        raise ScheduleError(
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


def apply_default(
    func: tirx.PrimFunc,
    target: tvm.target.Target | HardwareModel | None = None,
    recipes: Sequence[ModuleType] | None = None,
) -> tirx.PrimFunc:
    """Schedule a PrimFunc by the first recipe that fits; an already scheduled one is returned as it is.

    Parameters
    ----------
    func : PrimFunc
        Static shapes, in S-TIR (blocks).
    target : Target or HardwareModel, optional
        For which hardware; default: the current target, else this host.
    recipes : sequence of modules, optional
        What to try, in this order; default: `uir_tvm.schedules.RECIPES`.

    Returns
    -------
    PrimFunc
        Scheduled, with the attribute ``uir.recipe``.

    Raises
    ------
    ScheduleError
        No recipe fits, not even the scalar fallback; or none could (`check_schedulable`).
    """
    from ..schedules import RECIPES

    if is_scheduled(func):
        return func
    hw = (
        target
        if isinstance(target, HardwareModel)
        else model_of_target(target if target is not None else tvm.target.Target.current(allow_none=True))
    )
    check_schedulable(func)
    func = begin(func, hw)
    reasons = []
    for recipe in RECIPES if recipes is None else recipes:
        try:
            sch = _run_with_room(recipe, func, hw)
        except (ScheduleError, TVMScheduleError) as error:
            reason = str(error).splitlines()[0]
            reasons.append(f"{recipe.HERO}: {reason}")
            log.debug("recipe %s does not fit: %s", recipe.HERO, error)
            continue
        if sch is not None:
            return sch.mod["main"].with_attr(RECIPE, recipe.HERO)
    raise ScheduleError(
        "No recipe fits this function.",
        where=str(func.attrs.get("global_symbol", "main")) if func.attrs else "main",
        need="; ".join(reasons) or "blocks over static loops",
        remedy="write it as S-TIR blocks with static shapes, or let TVM's own lowering take it",
    )
