# SPDX-License-Identifier: Apache-2.0
"""What passes know of the variables of expressions at a place of a graph: pid, the loops around it, the
sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ..igraph import points
from ..igraph.affine import Affine
from ..igraph.nodes import IGraph, Loop
from ..igraph.sizes import known
from ..igraph.space import Size, Space
from ..verify.launch_range import range_at_launch
from ..verify.sized_launch import SizedLaunch


@attrs.frozen(eq=False)
class StepDomain:
    """The variables at a place of a graph.

    Attributes
    ----------
    variables : mapping of str to int or Size
        An int is an extent; that of pid is the greatest that sizes admit.
    launch : SizedLaunch
        The sizes, and how many units they make.
    """

    variables: Mapping[str, int | Size]
    launch: SizedLaunch

    @staticmethod
    def of(graph: IGraph, loops: Sequence[Loop] = ()) -> StepDomain:
        """That inside of some loops of a graph."""
        return StepDomain(known(graph, loops), SizedLaunch.of(graph))

    def inside(self, variable: str, extent: int) -> StepDomain:
        """That inside of one loop more."""
        return attrs.evolve(self, variables={**self.variables, variable: extent})

    def range(self, value: Affine) -> tuple[int, int]:
        """Bounds of an expression by intervals, for all sizes."""
        space = Space(self.variables)
        return space.range(value) if self.launch.static else range_at_launch(value, space, self.launch)

    def extremes(self, value: Affine) -> tuple[int, int]:
        """Bounds of an expression, as `points.extremes`, for all sizes."""
        return points.extremes(value, self.variables) if self.launch.static else self.range(value)

    def at_ends(self, value: Affine) -> list[int]:
        """An expression where all of its variables are least, and where all are greatest; none with sizes."""
        names = value.variables()
        extents = {name: known for name in names if isinstance(known := self.variables[name], int)}
        if not self.launch.static or len(extents) < len(names):
            return []
        ends = {name: np.array([0, extent - 1]) for name, extent in extents.items()}
        return [int(found) for found in np.atleast_1d(value.values(ends))]
