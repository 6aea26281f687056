# SPDX-License-Identifier: Apache-2.0
"""Move elision: what a unit stores and loads again stays in its registers.

Before::

    move.reg.sram s, t;  sync.sram s, s;  move.sram.reg u, s;  unary.exp v, u

After::

    sync.sram s, s;  unary.exp v, t

Copies within reg of the same layout go as well, where all their readers can read the original.  A store to
temporary memory that nobody reads any more goes too.  Exact: the load would bring the elements that the unit
itself stored there and still has; `held_memory` says why no other unit can have changed them.  Syncs stay:
which of them are needed without these accesses is for ``insert_sync`` to say.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
from . import dead
from .figures import fits
from .held_memory import forward


def run(graph: IGraph) -> IGraph:
    """The graph without loads of what the unit stored; ``graph`` itself where longer lives do not fit."""
    made = forward(graph, stores=True, copies=True)
    if made is graph:
        return graph
    made = dead.run(made)
    return made if fits(made) else graph
