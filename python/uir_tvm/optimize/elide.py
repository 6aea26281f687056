# SPDX-License-Identifier: Apache-2.0
"""Move elision: what a unit stores and loads again stays in its registers.

Before::

    move.reg.sram s, t;  sync.sram s, s;  move.sram.reg u, s;  unary.exp v, u

After::

    sync.sram s, s;  unary.exp v, t

Copies within reg of the same layout go as well, where all their readers can read the original.  A store to
temporary memory that nobody reads any more goes too.  Exact: the load would bring the elements that the unit
itself stored there and still has; `forward` says why no other unit can have changed them.  Syncs stay: which
of them are needed without these accesses is for ``insert_sync`` to say.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
from . import dead
from .examples import HARDWARE
from .figures import fits
from .forward import forward

_HEAD = (
    HARDWARE
    + """
igraph example on toy parallel (2, 2) {
  x = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 256, out)
  t = iPointer(reg, fp32, 64)
"""
)

BEFORE = (
    _HEAD
    + """
  v = iPointer(reg, fp32, 64)
  u = iPointer(reg, fp32, 64)
  s = iPointer(sram, fp32, 128)
  move.dram.reg.fp32 t[0; (2,32); (32,1)], x[64*pid; (2,32); (32,1)]
  move.reg.sram.fp32 s[64*(pid % 2); (2,32); (32,1)], t[0; (2,32); (32,1)]
  move.sram.reg.fp32 u[0; (2,32); (32,1)], s[64*(pid % 2); (2,32); (32,1)]
  unary.exp.fp32 v[0; (2,32); (32,1)], u[0; (2,32); (32,1)]
  move.reg.dram.fp32 y[64*pid; (2,32); (32,1)], v[0; (2,32); (32,1)]
}
"""
)

AFTER = (
    _HEAD
    + """
  v = iPointer(reg, fp32, 64)
  move.dram.reg.fp32 t[0; (2,32); (32,1)], x[64*pid; (2,32); (32,1)]
  unary.exp.fp32 v[0; (2,32); (32,1)], t[0; (2,32); (32,1)]
  move.reg.dram.fp32 y[64*pid; (2,32); (32,1)], v[0; (2,32); (32,1)]
}
"""
)


def run(graph: IGraph) -> IGraph:
    """The graph without loads of what the unit stored; ``graph`` itself where longer lives do not fit."""
    made = forward(graph, stores=True, copies=True)
    if made is graph:
        return graph
    made = dead.run(made)
    return made if fits(made) else graph
