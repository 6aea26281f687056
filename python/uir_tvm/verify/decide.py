# SPDX-License-Identifier: Apache-2.0
"""The ladder of decisions: one question, asked of the cheapest method that answers it.

Intervals settle nearly all questions.  Where they do not, all points are looked at if these are few; else
isl decides; where isl gives up, all points are looked at if they are not too many.  An answer says which rung
it comes from.
"""

from __future__ import annotations

from enum import Enum
from typing import Generic, Protocol, TypeVar

import attrs

from ..igraph.points import FEW_POINTS
from . import isl

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
    """

    found: T | None
    rung: Rung | None

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
    def num_points(self) -> int:
        """How many points there are to look at."""

    def excluded(self) -> bool:
        """Whether intervals show that there is none."""

    def by_points(self, few: bool) -> T_co | None:
        """One, found among all points; `TooMany` where the work outgrows what ``few`` points are worth."""

    def by_isl(self) -> T_co | None:
        """One, found by isl."""


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
