# SPDX-License-Identifier: Apache-2.0
"""The driver: which recipe schedules a function, in which of its forms, with which tiles.

Recipes are asked in the registry's order, each for its forms in order.  Tiles shrink before a form is given
up for want of room, whichever stage finds out, and a form before its recipe.  Every try is recorded.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import attrs
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError

from ..errors import NoRecipeError, ScheduleError
from ..igraph import HardwareModel
from ..refusal import Attempt, Refusal
from .annotations import PARALLEL, VECTOR
from .begin import begin, check_schedulable, is_scheduled
from .blocks import leaf_blocks
from .decisions import OWN, Answered, Choice, Decisions
from .hardware_of import model_of_target
from .overlap import overlap
from .recipe import Form, Recipe
from .smaller import PREFERRED_SHRINKS, SHRINKS, with_tiles
from .tile_facts import space_of
from .transaction import given_up_when_refused

log = logging.getLogger(__name__)

#: The package that has the recipes.  It is made of this one, which knows it by name alone.
HOME = "uir_tvm.schedules"
#: Attribute of a scheduled PrimFunc: the hero of the recipe that made it.
RECIPE = "uir.recipe"
#: The stages at whose refusals the driver looks: where a schedule is made, and where its kernel is printed.
SCHEDULING, PRINTING = "tir", "source"


def begun(func: tirx.PrimFunc) -> Schedule:
    """A schedule of a function in which nothing is done yet; a copy takes a hundredth of the time."""
    return Schedule(func, debug_mask="none", error_render_level="fast")


def run_recipe(
    recipe: Recipe,
    func: tirx.PrimFunc,
    hw: HardwareModel,
    decisions: Decisions = OWN,
    beginning: Schedule | None = None,
) -> Schedule | None:
    """The schedule that a recipe makes of a function; None where the function is not of its kind.

    Parameters
    ----------
    func : PrimFunc
        As `begin` gives it.
    beginning : Schedule, optional
        What `begun` gives of the function; it is left as it is.

    Raises
    ------
    ScheduleError, tvm.s_tir.schedule.ScheduleError
        The recipe does not fit.
    """
    sch = begun(func) if beginning is None else beginning.copy()
    if not recipe.matches(sch):
        return None
    with given_up_when_refused():
        sch = recipe.schedule(sch, hw, decisions) or sch
    stages = space_of(hw).stages
    if stages > 1:
        overlap(sch, stages, decisions)
    decide_vectors(sch, hw, decisions)
    return sch


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


@attrs.frozen(eq=False)
class Candidate:
    """One way to schedule a function: a recipe in one of its forms, with tiles of one size.

    Parameters
    ----------
    func : PrimFunc
        As `begin` gives it.
    shrink : int
        By how much tiles are smaller than the hardware prefers.
    own_sizes : bool
        Whether sizes that are the recipe's own are smaller too: with larger ones the kernel would not be.
    beginning : Schedule, optional
        As for `run_recipe`.
    """

    recipe: Recipe
    form: Form
    func: tirx.PrimFunc = attrs.field(repr=False)
    hardware: HardwareModel = attrs.field(repr=False)
    shrink: int = 1
    own_sizes: bool = False
    beginning: Schedule | None = attrs.field(default=None, repr=False)

    def make(self) -> tirx.PrimFunc:
        """The scheduled function, with the attribute ``uir.recipe``.

        Raises
        ------
        ScheduleError, tvm.s_tir.schedule.ScheduleError
            The recipe does not fit.
        """
        hw = with_tiles(self.hardware, self.shrink, self.own_sizes)
        answers = Answered(self.form) if self.form else OWN
        sch = run_recipe(self.recipe, self.func, hw, answers, self.beginning)
        if sch is None:
            raise ScheduleError("The function is not of this kind.", need=self.recipe.reason)
        return sch.mod["main"].with_attr(RECIPE, self.recipe.hero)

    def attempt(self, built: Built) -> Attempt:
        """The record of it, and of what became of it."""
        refusal = built.refusal
        form = ", ".join(f"{name} {answers[0]}" for name, answers in self.form.items())
        told: tuple[str, ...] = ("", "", "a pass lacked room" if built.lacked_room else "")
        if refusal is not None:
            told = (refusal.stage, type(refusal.error).__name__, refusal.reason)
        return Attempt(self.recipe.hero, form, self.shrink, *told)


class Built(Protocol):
    """What became of a candidate."""

    @property
    def refusal(self) -> Refusal | None:
        """Why there is no kernel, if there is none."""

    @property
    def lacked_room(self) -> bool:
        """Whether some stage, of a kernel or of none, lacked room for its tiles."""


B = TypeVar("B", bound=Built)


class Driver(Generic[B]):
    """The search for the first candidate of which a kernel can be made.

    Parameters
    ----------
    func : PrimFunc
        Static shapes, in S-TIR, unscheduled.
    hardware : HardwareModel
    build : callable
        Makes a kernel of a candidate, or says why there is none.
    recipes : iterable of Recipe, optional
        What to try, in this order; default: `uir_tvm.schedules.RECIPES`.

    Attributes
    ----------
    attempts : list of Attempt
        All that was tried, in order.

    Raises
    ------
    ScheduleError
        No recipe could schedule the function (`check_schedulable`).
    """

    def __init__(
        self,
        func: tirx.PrimFunc,
        hardware: HardwareModel,
        build: Callable[[Candidate], B],
        recipes: Iterable[Recipe] | None = None,
    ) -> None:
        check_schedulable(func)
        self.func, self.hardware, self.build = begin(func, hardware), hardware, build
        self._beginning = begun(self.func)
        kind = self._beginning.copy()
        tried = importlib.import_module(HOME).RECIPES if recipes is None else recipes
        self.recipes = tuple(recipe for recipe in tried if recipe.matches(kind))
        self.attempts: list[Attempt] = []

    def run(self) -> B:
        """What was built; where nothing could be, of the first candidate that was scheduled.

        Raises
        ------
        NoRecipeError
            None was.
        """
        first: B | None = None
        printed = False
        for recipe in self.recipes:
            if recipe.last_resort and printed:
                continue
            for form in recipe.forms:
                given = Candidate(recipe, form, self.func, self.hardware, beginning=self._beginning)
                built = self._largest(given)
                if built.refusal is None or built.refusal.is_fault:
                    return built
                if built.refusal.stage != SCHEDULING:
                    first, printed = first or built, built.refusal.stage == PRINTING
        if first is None:
            raise NoRecipeError(
                "No recipe fits this function.",
                where=str((self.func.attrs or {}).get("global_symbol", "main")),
                need="; ".join(f"{a.recipe}: {a.reason}" for a in self.attempts)
                or "blocks over static loops",
                remedy="write it as S-TIR blocks with static shapes, or let TVM's own lowering take it",
            )
        return first

    def _largest(self, candidate: Candidate) -> B:
        """What was built with the largest tiles for which all stages have room; else with the largest at all.

        What a tile takes is known when its kernel is printed, with all temporaries and work buffers.  Sizes
        that are a recipe's own are known to be fast: they are smaller only where no kernel is made with them.
        """
        first = self._try(candidate)
        if not first.lacked_room:
            return first
        found = [first]
        for shrink in PREFERRED_SHRINKS if first.refusal is None else SHRINKS:
            built = self._try(attrs.evolve(candidate, shrink=shrink, own_sizes=first.refusal is not None))
            if built.refusal is None and not built.lacked_room:
                return built
            found.append(built)
        return next((built for built in found if built.refusal is None), first)

    def _try(self, candidate: Candidate) -> B:
        built = self.build(candidate)
        attempt = candidate.attempt(built)
        self.attempts.append(attempt)
        if built.refusal is not None:
            log.debug("%s: %s", attempt, built.refusal.error)
        return built


@attrs.frozen
class _Scheduled:
    """A candidate as a function, whatever later stages would say."""

    func: tirx.PrimFunc | None
    refusal: Refusal | None = None

    @property
    def lacked_room(self) -> bool:
        return self.refusal is not None and self.refusal.lacks_room

    @classmethod
    def of(cls, candidate: Candidate) -> _Scheduled:
        try:
            return cls(candidate.make())
        except (ScheduleError, TVMScheduleError) as error:
            return cls(None, Refusal(SCHEDULING, error))


def apply_default(
    func: tirx.PrimFunc,
    target: tvm.target.Target | HardwareModel | None = None,
    recipes: Iterable[Recipe] | None = None,
) -> tirx.PrimFunc:
    """Schedule a PrimFunc by the first recipe that fits; an already scheduled one is returned as it is.

    Parameters
    ----------
    func : PrimFunc
        Static shapes, in S-TIR (blocks).
    target : Target or HardwareModel, optional
        For which hardware; default: the current target, else this host.
    recipes : iterable of Recipe, optional
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
    if is_scheduled(func):
        return func
    hw = (
        target
        if isinstance(target, HardwareModel)
        else model_of_target(target if target is not None else tvm.target.Target.current(allow_none=True))
    )
    made = Driver(func, hw, _Scheduled.of, recipes).run().func
    assert made is not None, "the driver returns what was scheduled, or raises"
    return made
