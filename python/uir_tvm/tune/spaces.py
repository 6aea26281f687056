# SPDX-License-Identifier: Apache-2.0
"""The design spaces of a kernel: what its recipes can make of it, each a schedule with sampled decisions.

A recipe is run once for each combination of its forks, with every number sampled at its default
(`uir_tvm.schedule.decisions`).  What comes out is a stock MetaSchedule design space: a schedule whose trace
another decision can be put into.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from tvm_ffi.structural import structural_hash

from ..errors import ScheduleError
from ..igraph import HardwareModel
from ..schedule.begin import begin
from ..schedule.decisions import Sampled
from ..schedule.driver import run_recipe
from ..schedule.hardware_of import model_of_target
from ..schedule.recipe import Recipe

log = logging.getLogger(__name__)

#: Design spaces of a kernel at most, and combinations of forks of one recipe.
MOST_SPACES, MOST_FORKS = 40, 24


@attrs.frozen
class DesignSpace:
    """One form of a kernel's schedule.

    Parameters
    ----------
    recipe : str
        That made it.
    forks : mapping of str to int
        Which form.
    begun : PrimFunc
        The function that the trace begins from.
    schedule : Schedule
        With the recipe's own decisions.
    names : tuple of str
        What each sampling instruction of the trace decides, in order.
    """

    recipe: str
    forks: Mapping[str, int]
    begun: tirx.PrimFunc = attrs.field(repr=False, eq=False)
    schedule: Schedule = attrs.field(repr=False, eq=False)
    names: tuple[str, ...]

    def decisions(self, sch: Schedule) -> dict[str, int]:
        """What a schedule of this space decides, forks included."""
        found = dict(self.forks)
        for name, value in zip(self.names, sampled_values(sch.trace), strict=True):
            found[name] = value
        return found


def sampled_values(trace: tvm.s_tir.schedule.Trace) -> list[int]:
    """What the sampling instructions of a trace decided: a number, or the inner factor of a tile."""
    values = []
    for inst in trace.insts:
        if inst.kind.name == "SampleCategorical":
            values.append(int(inst.attrs[0][int(trace.decisions[inst])]))
        elif inst.kind.name == "SamplePerfectTile":
            values.append(int(trace.decisions[inst][-1]))
    return values


def design_spaces(
    func: tirx.PrimFunc,
    target: tvm.target.Target | HardwareModel,
    most: int = MOST_SPACES,
    most_forks: int = MOST_FORKS,
) -> list[DesignSpace]:
    """The design spaces of a kernel, the compiler's own schedule in the first.

    Parameters
    ----------
    func : PrimFunc
        Static shapes, in S-TIR, unscheduled.
    target : Target or HardwareModel
        A uir target.
    most : int
        Design spaces at most: the own one of every recipe that fits, then the others, in the recipes' order.
    most_forks : int
        Combinations of forks of a recipe that are tried.

    Returns
    -------
    list of DesignSpace
        Different ones (two recipes that make the same of a function count once).
    """
    from ..schedules import RECIPES

    hw = target if isinstance(target, HardwareModel) else model_of_target(target)
    begun = begin(func, hw)
    own: dict[int, DesignSpace] = {}
    others: dict[int, DesignSpace] = {}
    for recipe in RECIPES:
        if own and recipe.stopgap:
            continue
        for number, space in enumerate(_of_recipe(recipe, begun, hw, most_forks)):
            # the trace with its decisions is the space: equal ones differ in the recipe's name alone
            key = hash(
                (structural_hash(space.begun), str(space.schedule.trace.simplified(remove_postproc=True)))
            )
            (others if number else own).setdefault(key, space)
    return list({**own, **others}.values())[:most]


def _of_recipe(recipe: Recipe, func: tirx.PrimFunc, hw: HardwareModel, most: int) -> Iterator[DesignSpace]:
    """Combinations of forks, nearest to the recipe's own first: fewest changes, then smallest ones.

    A recipe lists what it may answer with the nearest first; how far an answer is is its place there.
    """
    waiting: list[tuple[tuple[int, int, int], dict[str, int]]] = [((0, 0, 0), {})]
    seen: set[tuple[tuple[str, int], ...]] = set()
    tried = 0
    while waiting and tried < most:
        (changes, distance, _), wanted = heapq.heappop(waiting)
        sampled = Sampled(wanted)
        tried += 1
        try:
            sch = run_recipe(recipe, func, hw, sampled)
        except (ScheduleError, TVMScheduleError) as error:
            log.debug("recipe %s, %s: %s", recipe.hero, sampled.forks, error)
            sch = None
        # what was answered otherwise stays; forks that are asked before the last of these have had their turn
        free = [name for name in sampled.forks if name not in wanted]
        for name in free:
            for place, answer in enumerate(sampled.answers[name]):
                other = {**_before(sampled.forks, name), name: answer}
                key = tuple(other.items())
                if answer != sampled.forks[name] and key not in seen:
                    seen.add(key)
                    heapq.heappush(waiting, ((changes + 1, distance + place, len(seen)), other))
        if sch is not None:
            begun = func if sampled.begun is None else sampled.begun
            yield DesignSpace(recipe.hero, sampled.forks, begun, sch, tuple(sampled.names))


def _before(forks: Mapping[str, int], name: str) -> dict[str, int]:
    """The forks that were answered before one."""
    names: list[Any] = list(forks)
    return {key: forks[key] for key in names[: names.index(name)]}
