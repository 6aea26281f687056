# SPDX-License-Identifier: Apache-2.0
"""What was found out about the operands of a graph, for the next graph to take over.

A pass leaves most iOps as they are, and nodes are immutable: of an operand that is the same object, in the
same loops, regions and what rules proved of them hold on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import attrs

from ..igraph.affine import Affine
from ..igraph.dealt import left
from ..igraph.nodes import IGraph, Loop
from ..igraph.once import once
from ..igraph.space import Size, Space
from .sized_launch import PID, SizedLaunch

T = TypeVar("T")


@attrs.frozen(eq=False, slots=False)
class Standing:
    """Where an iOp stands: pid and the loops around it, outermost first, and how many values each has.

    ``tiles`` is what is positive where it runs, in a loop over a unit's tiles (`igraph.dealt`); ``sizes`` are
    the graph's.
    """

    extents: dict[str, int]
    tiles: Affine | None
    sizes: tuple[Size, ...]

    @once
    def space(self) -> Space:
        """What is known of pid, the loops and the sizes."""
        return Space({**self.extents, **{str(size.name): size for size in self.sizes}})


class Seen:
    """What was found out in one graph, and what is taken over from the graph before.

    Nothing is where the number of units or the sizes are others.
    """

    def __init__(self, graph: IGraph, before: Seen | None = None) -> None:
        self.units = int(graph.num_parallel)
        self.groups: Affine | None = graph.groups
        self.launch = SizedLaunch.of(graph)
        self._found: dict[Hashable, tuple[Any, Any]] = {}
        self._before: dict[Hashable, tuple[Any, Any]] = {}
        if before is not None and before.units == self.units and self.launch.same_as(before.launch):
            self.launch, self._before = before.launch, before._found

    def find(self, key: Hashable, of: Any, make: Callable[[], T]) -> T:
        """What ``make`` gives, unless that was found before.

        Parameters
        ----------
        key : hashable
            With the handles of all nodes that it depends on.
        of : object
            These nodes, which are kept alive: another one gets no handle of theirs.
        """
        found = self._found.get(key)
        if found is None:
            found = self._before.get(key) or (of, make())
            self._found[key] = found
        value: T = found[1]
        return value

    def domain(self, loops: Sequence[Loop]) -> Standing:
        """The domain of what stands in these loops, the same object in the next graph."""
        extents = {PID: self.units, **{str(loop.var): int(loop.extent) for loop in loops}}
        tiles = None if self.groups is None else left(self.groups, self.units, loops)
        key = ("domain", tuple(extents.items()), str(tiles))
        return self.find(key, None, lambda: Standing(extents, tiles, tuple(self.launch.sizes)))


_last = threading.local()


def seen_in(graph: IGraph) -> Seen:
    """For what is found out in a graph: it takes over from the graph that this thread looked at before."""
    seen = Seen(graph, getattr(_last, "seen", None))
    _last.seen = seen
    return seen
