# SPDX-License-Identifier: Apache-2.0
"""The ladder of decisions: one question, asked of the cheapest method that answers it.

Intervals settle nearly all questions.  Where they do not, all points are looked at if these are few; else
isl decides; where isl gives up, all points are looked at if they are not too many.  An answer says which rung
it comes from.

Where a graph has sizes there are too many points: intervals or isl decide for all sizes at once.  What isl
finds is shown at the least sizes at which it is so, by the same question about the static graph there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Generic, Protocol, TypeVar

import attrs
import islpy

from ..igraph.points import FEW_POINTS
from . import isl
from .sized_launch import SizedLaunch

#: Points above which enumeration is given up, and points looked at in one go.
MAX_POINTS = 20_000_000
CHUNK = 1 << 18

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Rung(Enum):
    """What decided."""

    INTERVALS = "intervals"
    POINTS = "points"
    ISL = "isl"


class TooMany(Exception):
    """Looking at all points met more than it may."""


@attrs.frozen
class Decision(Generic[T]):
    """An answer.

    Attributes
    ----------
    found : object or None
        What shows that it is so; None: it is not so, or that is not known.
    rung : Rung or None
        What decided; None: nothing did.
    sizes : mapping of str to int
        The sizes at which it was found.
    """

    found: T | None
    rung: Rung | None
    sizes: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def decided(self) -> bool:
        """Whether the answer holds."""
        return self.rung is not None

    @property
    def excluded(self) -> bool:
        """Whether it is known that there is no such thing."""
        return self.decided and self.found is None


class Question(Protocol[T_co]):
    """Is there such a point?  Each method answers exactly, or says that it does not."""

    @property
    def launch(self) -> SizedLaunch:
        """The sizes for all of which it is asked."""

    @property
    def num_points(self) -> int:
        """How many points there are to look at."""

    def excluded(self) -> bool:
        """Whether intervals show that there is none."""

    def by_points(self, few: bool) -> T_co | None:
        """One, found among all points; `TooMany` where the work outgrows what ``few`` points are worth."""

    def by_isl(self) -> T_co | None:
        """One, found by isl; asked where there are no sizes."""

    def counterexamples(self) -> Sequence[Callable[[], islpy.Set]]:
        """All of them, sizes as parameters, in ways of which the next is tried where isl gives up on
        one; asked where there are sizes.
        """

    def at(self, sizes: Mapping[str, int]) -> Question[T_co]:
        """The question about the static graph at given sizes."""


def decide(question: Question[T], few: int | None = None) -> Decision[T]:
    """The answer of the first rung that has one.

    Parameters
    ----------
    question : Question
    few : int, optional
        Points up to which they come before isl; default `FEW_POINTS`.
    """
    if question.excluded():
        return Decision(None, Rung.INTERVALS)
    if not question.launch.static:
        return _for_all_sizes(question)
    points = question.num_points
    if points <= (FEW_POINTS if few is None else few):
        try:
            return Decision(question.by_points(True), Rung.POINTS)
        except TooMany:
            pass
    try:
        return Decision(isl.bounded(question.by_isl), Rung.ISL)
    except isl.Exhausted:
        pass
    if points <= MAX_POINTS:
        try:
            return Decision(question.by_points(False), Rung.POINTS)
        except TooMany:
            pass
    return Decision(None, None)


def _for_all_sizes(question: Question[T]) -> Decision[T]:
    """The answer for all sizes at once, shown at the least ones; where isl gives up, at some that show it."""
    launch, found = question.launch, None
    for way in question.counterexamples():
        try:
            found, none = isl.bounded(partial(_looked_at, way))
        except isl.Exhausted:
            continue
        if none:
            return Decision(None, Rung.ISL)
        break
    if found is None:
        return _at_probes(question)
    try:
        sizes = isl.bounded(lambda: isl.least_sizes(found, launch))
    except isl.Exhausted:
        sizes = isl.some_sizes(found, launch)
    answer = decide(question.at(sizes))
    if not answer.decided:
        return Decision(None, None)
    assert answer.found is not None, f"isl finds at {sizes} what is not there"
    return Decision(answer.found, Rung.ISL, sizes)


def _looked_at(way: Callable[[], islpy.Set]) -> tuple[islpy.Set, bool]:
    found = way()
    return found, found.is_empty()


def _at_probes(question: Question[T]) -> Decision[T]:
    """One at some sizes; not known where these do not show one."""
    for sizes in question.launch.probes():
        answer = decide(question.at(sizes))
        if answer.found is not None:
            return attrs.evolve(answer, sizes=sizes)
    return Decision(None, None)
