# SPDX-License-Identifier: Apache-2.0
"""One load for a slice of dram or sram that several iOps want.

Before::

    move.dram.reg t, x[s];  unary.exp u, t;  move.dram.reg v, x[s];  binary.mul u, u, v

After::

    move.dram.reg t, x[s];  unary.exp u, t;  binary.mul u, u, t

Also for pieces of what was loaded, and for loads in loops below the first.  Exact: the second load would
bring the elements that the first one's register still has; `forward` says why nobody can have changed them.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
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
  u = iPointer(reg, fp32, 64)
"""
)

BEFORE = (
    _HEAD
    + """
  v = iPointer(reg, fp32, 64)
  move.dram.reg.fp32 t[0; (2,32); (32,1)], x[64*pid; (2,32); (32,1)]
  unary.exp.fp32 u[0; (2,32); (32,1)], t[0; (2,32); (32,1)]
  move.dram.reg.fp32 v[0; (2,32); (32,1)], x[64*pid; (2,32); (32,1)]
  binary.mul.fp32 u[0; (2,32); (32,1)], u[0; (2,32); (32,1)], v[0; (2,32); (32,1)]
  move.reg.dram.fp32 y[64*pid; (2,32); (32,1)], u[0; (2,32); (32,1)]
}
"""
)

AFTER = (
    _HEAD
    + """
  move.dram.reg.fp32 t[0; (2,32); (32,1)], x[64*pid; (2,32); (32,1)]
  unary.exp.fp32 u[0; (2,32); (32,1)], t[0; (2,32); (32,1)]
  binary.mul.fp32 u[0; (2,32); (32,1)], u[0; (2,32); (32,1)], t[0; (2,32); (32,1)]
  move.reg.dram.fp32 y[64*pid; (2,32); (32,1)], u[0; (2,32); (32,1)]
}
"""
)


def run(graph: IGraph) -> IGraph:
    """The graph without loads of what reg holds; ``graph`` itself where the lives it makes do not fit."""
    made = forward(graph, loads=True)
    return made if made is graph or fits(made) else graph
