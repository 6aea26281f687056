# SPDX-License-Identifier: Apache-2.0
"""The one vocabulary of heroes: what decides the shape of a kernel's work.

The kernel graph gives every custom operator a hero, every recipe schedules those of one hero, and reports
name both by it.
"""

from __future__ import annotations

from .errors import UirError

#: Hero -> what it does.
HEROES: dict[str, str] = {
    "attention": "two products around a softmax, in one pass over the keys",
    "contraction": "a product that no library takes",
    "normalization": "reductions over rows, and elements of their rows again",
    "reduction": "reductions over rows",
    "column reduction": "reductions over leading or middle dimensions",
    "transpose": "elements in another order",
    "gather": "elements whose places are data",
    "update": "rows of a tensor, where data says or at a known place; the others stay",
    "concat": "pieces that are moved, nothing is computed",
    "elementwise": "one element of every operand for one of the result",
    "library": "a library's operator",
    "opaque": "anything that is not merged with what it reads",
    "phases": "several of these, one after the other on all units",
    "fallback": "anything, on one unit",
}


def add_hero(name: str, does: str) -> None:
    """Let the vocabulary have another hero, for a recipe from outside the package.

    Raises
    ------
    UirError
        There is one of that name.
    """
    if name in HEROES:
        raise UirError(f"There is a hero {name!r} already.", need="a name of its own", limit=HEROES[name])
    HEROES[name] = does


def hero(name: str) -> str:
    """A name of the vocabulary.

    Raises
    ------
    UirError
        It is none.
    """
    if name not in HEROES:
        raise UirError(
            f"{name!r} is no hero.",
            need="one of " + ", ".join(HEROES),
            remedy="add it to the vocabulary: uir_tvm.heroes.add_hero",
        )
    return name
