# SPDX-License-Identifier: Apache-2.0
"""Loops in which units take tiles in turn, where sizes decide how many tiles there are.

The groups of such a graph are tiles at most: ``parallel ((n + 3) / 4 up_to 48, 1)`` has as many units as
there are tiles, but no more than 48.  Its body is a loop over a unit's tiles: unit ``pid`` takes those of
number ``pid + 48*k``.  The loop's extent is the most that any unit has for all sizes.  A unit runs the
rounds whose tile is there (`left`) and no others: printers end the loop, and rules take nothing for done
beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .affine import Affine, var
from .nodes import IGraph, Loop

#: The attribute of a loop over the tiles of a unit.
DEALT = "dealt"
#: The attribute of a loop of one round within such a loop: it does what belongs to the tile of so many rounds
#: later, and is left out where there is none.
AHEAD = "ahead"


def is_dealt(graph: IGraph) -> bool:
    """Whether a graph has a loop over the tiles of a unit."""
    return any(isinstance(node, Loop) and DEALT in node.attrs for node in graph.body)


def tile_of(loop: str, units: int, ahead: int = 0) -> Affine:
    """The number of the tile that a unit has in a round of such a loop, or so many rounds later."""
    return var("pid") + (var(loop) + ahead) * units


def left(groups: Affine, units: int, loops: Sequence[Loop]) -> Affine | None:
    """What is positive in the rounds that a unit runs, tiles from its own on; None outside of such loops.

    Parameters
    ----------
    groups : Affine
        How many tiles there are.
    units : int
        That take them.
    loops : sequence of Loop
        Around the place that is asked about.
    """
    around = next((loop for loop in loops if DEALT in loop.attrs), None)
    ahead = sum(int(loop.attrs.get(AHEAD, 0)) for loop in loops)
    if around is not None:
        return groups - tile_of(str(around.var), units, ahead)
    return groups - (var("pid") + ahead * units) if ahead else None


def says_so(end: Affine, tiles: Affine) -> bool:
    """Whether the end of a box is, by its form, not positive exactly where no tiles are left.

    ``n - 4*pid - 192*k`` is so where the tiles left are ``(n + 3)/4 - pid - 48*k``.
    """
    divided = [term for term in tiles.terms if term.kind == "floordiv"]
    if not divided:
        return end == tiles
    if len(divided) > 1 or divided[0].coeff != 1:
        return False
    by, over = int(divided[0].divisor), divided[0].argument
    return end == over - (by - 1) + (tiles - divided[0].expr) * by


def rounds_at(graph: IGraph, sizes: Mapping[str, int]) -> int:
    """Rounds of the units that have most tiles, at some sizes; at least 1."""
    if graph.groups is None:
        return 1
    return max(1, -(-graph.groups.evaluate(dict(sizes)) // max(1, int(graph.num_groups))))


def ended(body: Sequence[Any], rounds: int) -> list[Any]:
    """The loop tree whose loops over tiles have no more rounds than that."""
    return [
        Loop(node.var, min(int(node.extent), rounds), node.body, node.attrs)
        if isinstance(node, Loop) and DEALT in node.attrs
        else node
        for node in body
    ]
