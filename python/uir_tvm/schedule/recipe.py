# SPDX-License-Identifier: Apache-2.0
"""A recipe: how functions of one hero are scheduled; and the registry of recipes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs
from tvm import tirx
from tvm.s_tir import Schedule

from ..errors import ScheduleError
from ..heroes import hero
from ..igraph import HardwareModel
from .decisions import Decisions

if TYPE_CHECKING:
    from .demo import Example

#: Answers to the forks of a recipe, by name: the first that is possible is taken (`decisions.Answered`).
Form = Mapping[str, tuple[int, ...]]


@attrs.frozen(eq=False)
class Recipe:
    """How functions of one hero are scheduled.

    Parameters
    ----------
    hero : str
        A name of the vocabulary (`uir_tvm.heroes`); no other recipe of the registry has it.
    matches : callable
        Whether a function may be of this hero; it changes nothing of the schedule that it is given.
    schedule : callable
        (schedule, hardware model, decisions) -> None, or another schedule, of a rewritten function.  Raises
        ScheduleError where the function is none that it knows, CapacityError where smaller tiles would do.
    example : callable
        A function of this hero, which the recipe shows when it runs as a script.
    reason : str
        Why such functions have a recipe of their own, for reports.
    forms : tuple of mapping
        Its candidates in the order in which they are tried, each the answers to forks that it takes; the
        recipe's own answers come first.
    stopgap : bool
        Whether it is for functions that no other recipe fits: nobody tunes it beside one that does.
    apart : callable
        Of a function with open sizes: variables, each with the one value for which a kernel of its own is so
        much faster that a kernel for all sizes should hand over to it (`uir_tvm.variants`).
    last_resort : bool
        Whether it takes everything, but on one unit: what a printer refuses runs faster on the host.
    """

    hero: str = attrs.field(converter=hero)
    matches: Callable[[Schedule], bool]
    schedule: Callable[[Schedule, HardwareModel, Decisions], Schedule | None]
    example: Callable[[], Example]
    reason: str
    forms: tuple[Form, ...] = ({},)
    stopgap: bool = False
    last_resort: bool = False
    apart: Callable[[tirx.PrimFunc], Mapping[tirx.Var, int]] = lambda func: {}


class Registry(Collection[Recipe]):
    """Recipes in the order in which they are tried: from the most particular hero to the last resort."""

    def __init__(self, *recipes: Recipe) -> None:
        self._recipes: list[Recipe] = []
        for recipe in recipes:
            self.add(recipe)

    def add(self, recipe: Recipe, before: str | None = None) -> None:
        """Let a recipe be tried, before that of a hero or after all others.

        Raises
        ------
        ScheduleError
            There is one for its hero already, or none for that of ``before``.
        """
        if recipe.hero in self.heroes:
            raise ScheduleError(
                f"There is a recipe for the hero {recipe.hero!r} already.",
                need="one recipe for each hero",
                remedy="remove the other one first, or give this one a hero of its own",
            )
        place = len(self._recipes) if before is None else self._recipes.index(self[before])
        self._recipes.insert(place, recipe)

    def remove(self, hero: str) -> Recipe:
        """Take the recipe of a hero out, and return it.

        Raises
        ------
        ScheduleError
            There is none.
        """
        found = self[hero]
        self._recipes.remove(found)
        return found

    @property
    def heroes(self) -> tuple[str, ...]:
        """The heroes that have a recipe, in order."""
        return tuple(recipe.hero for recipe in self._recipes)

    def __getitem__(self, hero: str) -> Recipe:
        for recipe in self._recipes:
            if recipe.hero == hero:
                return recipe
        raise ScheduleError(f"No recipe is for the hero {hero!r}.", need="one of " + ", ".join(self.heroes))

    def __contains__(self, recipe: object) -> bool:
        return recipe in self._recipes

    def __iter__(self) -> Iterator[Recipe]:
        return iter(tuple(self._recipes))

    def __len__(self) -> int:
        return len(self._recipes)
