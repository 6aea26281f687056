# SPDX-License-Identifier: Apache-2.0
"""One load for a slice of dram or sram that several iOps want.

Before::

    move.dram.reg t, x[s];  unary.exp u, t;  move.dram.reg v, x[s];  binary.mul u, u, v

After::

    move.dram.reg t, x[s];  unary.exp u, t;  binary.mul u, u, t

Also for pieces of what was loaded, and for loads in loops below the first.  Exact: the second load would
bring the elements that the first one's register still has; `held_memory` says why nobody can have changed
them.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
from .figures import fits
from .held_memory import forward


def run(graph: IGraph) -> IGraph:
    """The graph without loads of what reg holds; ``graph`` itself where the lives it makes do not fit."""
    made = forward(graph, loads=True)
    return made if made is graph or fits(made) else graph
