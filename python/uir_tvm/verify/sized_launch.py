# SPDX-License-Identifier: Apache-2.0
"""What is known only when a kernel is launched: its sizes, and with them how many units run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ..igraph.affine import Affine
from ..igraph.nodes import IGraph
from ..igraph.space import Size

#: The variable that is the number of the unit.
PID = "pid"


@attrs.frozen(eq=False)
class SizedLaunch:
    """The sizes of a graph.

    Attributes
    ----------
    sizes : tuple of Size
        None of them: the graph is static.
    pid_end : Affine or None
        The number of units, where sizes decide it; None: the extent of pid has it.
    """

    sizes: tuple[Size, ...] = ()
    pid_end: Affine | None = None

    @staticmethod
    def of(graph: IGraph) -> SizedLaunch:
        """That of a graph."""
        if not graph.sizes:
            return STATIC
        return SizedLaunch(tuple(graph.sizes), None if graph.groups is None else graph.parallel)

    def same_as(self, other: SizedLaunch) -> bool:
        """Whether the sizes and the number of units are those of another."""
        return self is other or (self.sizes == other.sizes and str(self.pid_end) == str(other.pid_end))

    @property
    def static(self) -> bool:
        """Whether there is nothing to know."""
        return not self.sizes

    @property
    def names(self) -> list[str]:
        """The names of the sizes."""
        return [str(size.name) for size in self.sizes]

    def units(self, extent: int, values: Mapping[str, int]) -> int:
        """How many of ``extent`` units there are at values of the sizes."""
        return extent if self.pid_end is None else max(0, min(extent, self.pid_end.evaluate(values)))

    def probes(self) -> Sequence[dict[str, int]]:
        """A few choices of sizes to look at one by one: all least, a little above, larger; then of several
        sizes each with another step.
        """
        steps = [
            [_STEPS[(first + apart * k) % len(_STEPS)] for k in range(len(self.sizes))]
            for apart in range(min(len(self.sizes), len(_STEPS)))
            for first in range(len(_STEPS))
        ]
        found = {tuple(map(_near, self.sizes, some)): None for some in steps}
        return [dict(zip(self.names, values, strict=True)) for values in found]


#: No sizes.
STATIC = SizedLaunch()

#: What probes add to the least value.
_STEPS = (0, 1, 5, 66, 257)


def _near(size: Size, step: int) -> int:
    """An admissible value, as near to ``low + step`` as the size admits."""
    by = int(size.multiple_of)
    return min(-(-(int(size.low) + step) // by), int(size.high) // by) * by
