# SPDX-License-Identifier: Apache-2.0
"""The steps of a pipelined loop: which part of its body does which iteration at which time.

A part that runs ``lag`` steps behind the first does iteration t - lag at step t, if there is one::

    lags 0, 1, 2; 4 iterations

    step     0  1  2  3  4  5
    load     0  1  2  3            # at steps 2 and 3 all parts run: the steady loop
    compute     0  1  2  3
    store          0  1  2  3

Steps at which the same parts run follow each other, so that few runs of them make up the whole, for any
number of iterations: one with fewer than the parts lie apart has no steady loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs


@attrs.frozen(eq=False)
class LaggedPart:
    """Nodes of the loop's body, and by how many steps they are behind the first."""

    lag: int
    nodes: Sequence[Any]


@attrs.frozen(eq=False)
class Run:
    """Steps that follow each other, with the same parts.

    Attributes
    ----------
    count : int
        How many steps.
    parts : sequence of (LaggedPart, int)
        What runs at each, in order, and its iteration at the first of them.
    steady : bool
        Whether these are all parts.
    """

    count: int
    parts: Sequence[tuple[LaggedPart, int]]
    steady: bool


def runs(parts: Sequence[LaggedPart], extent: int) -> list[Run]:
    """The steps of a loop of ``extent`` iterations; parts without nodes do nothing.

    Parameters
    ----------
    parts : sequence of LaggedPart
        In the order in which they stand within a step.
    extent : int
        At least 1.
    """
    busy = [part for part in parts if part.nodes]
    turns = sorted({at for part in busy for at in (part.lag, part.lag + extent)})
    out: list[Run] = []
    for begin, end in zip(turns, turns[1:], strict=False):
        now = [(part, begin - part.lag) for part in busy if part.lag <= begin < part.lag + extent]
        if now:
            out.append(Run(end - begin, now, len(now) == len(busy)))
    return out


def open_runs(parts: Sequence[LaggedPart], extent: int) -> list[Run]:
    """The steps of a loop that may end before its extent: nothing leads out of it.

    The steady loop has as many steps as the loop iterations, those of the part that is furthest behind::

        load     0  1  2  3  -  -      # what is ahead at the last steps has no iteration to do
        compute     0  1  2  3  -
        store          0  1  2  3

    Parameters
    ----------
    parts : sequence of LaggedPart
        As for `runs`.
    extent : int
        At least as many iterations as there will be, at least 1.
    """
    busy = [part for part in parts if part.nodes]
    turns = sorted({part.lag for part in busy})
    out: list[Run] = []
    for begin, end in zip(turns, [*turns[1:], turns[-1] + extent], strict=True):
        now = [(part, begin - part.lag) for part in busy if part.lag <= begin]
        out.append(Run(end - begin, now, len(now) == len(busy)))
    return out
