# SPDX-License-Identifier: Apache-2.0
"""How much is asked of the tests: what is quick, or all (``UIR_TEST_ALL=1``, as ``make campaign`` asks)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["ALL", "asked", "every_two", "in_turn"]

Asked = TypeVar("Asked")
Name = TypeVar("Name")
Place = TypeVar("Place")
Way = TypeVar("Way")

ALL = bool(os.environ.get("UIR_TEST_ALL"))


def asked(few: Asked, many: Asked) -> Asked:
    """What the suite takes, or what the campaign does.

    >>> asked(5, 50)
    5
    """
    return many if ALL else few


def in_turn(
    names: Iterable[Name],
    places: Iterable[Place],
    *,
    always: int = 1,
    may: Callable[[Name, Place], bool] = lambda name, place: True,
    every: bool = ALL,
) -> list[tuple[Name, Place]]:
    """Each name at the first places and at one of the others in turn; in the campaign at all of them.

    What a front end or a recipe gives is the same for all devices, and what a device makes of one name says
    what it makes of the next: each name meets a device, and each device meets names.

    Parameters
    ----------
    names : iterable
        What is tested, such as operators.
    places : iterable
        Where, such as targets: those that have every name first.
    always : int
        How many they are.
    may : callable
        ``may(name, place)``: whether there is such a pair.
    every : bool
        Whether all pairs are taken.

    Returns
    -------
    list of tuple
        Pairs in the order of the names, the same in every run.

    >>> in_turn("abc", ["cpu", "cuda", "bang"])
    [('a', 'cpu'), ('a', 'cuda'), ('b', 'cpu'), ('b', 'bang'), ('c', 'cpu'), ('c', 'bang')]
    """
    given, where = list(names), list(places)
    met: set[tuple[int, int]] = set()
    for turn, name in enumerate(given):
        others = [at for at in range(always, len(where)) if may(name, where[at])]
        # a step further after each round, so that what comes in the same rhythm meets others too
        chosen = others[(turn + turn // len(others)) % len(others) :][:1] if others else []
        first = [at for at in range(min(always, len(where))) if may(name, where[at])]
        met |= {(turn, at) for at in (*first, *(others if every else chosen))}
    for at in range(always, len(where)):
        able = [turn for turn, name in enumerate(given) if may(name, where[at])]
        if able and not any((turn, at) in met for turn in able):
            met.add((able[at % len(able)], at))
    return [(given[turn], where[at]) for turn, at in sorted(met)]


def every_two(
    names: Iterable[Name], places: Iterable[Place], ways: Sequence[Way], *, every: bool = ALL
) -> list[tuple[Name, Place, Way]]:
    """Triples in which any two things of two lists meet; in the campaign all triples.

    Parameters
    ----------
    ways : sequence
        No more than there are names, and no more than there are places.

    >>> every_two(["exp", "log"], ["cpu", "cuda"], ["fp32", "fp16"])
    [('exp', 'cpu', 'fp32'), ('exp', 'cuda', 'fp16'), ('log', 'cpu', 'fp16'), ('log', 'cuda', 'fp32')]
    """
    return [
        (name, place, way)
        for row, name in enumerate(names)
        for column, place in enumerate(places)
        for at, way in enumerate(ways)
        if every or at == (row + column) % len(ways)
    ]
