# SPDX-License-Identifier: Apache-2.0
"""Loops end where the unit decides it; bounds that only said that a round does something go.

Before::

    for k in 8 { move t[0; (4,8)], x[32*k; (4,8); rows :4*pid - 4*k + 4] }

After::

    for k in 8 [rounds=pid + 1] { move t[0; (4,8)], x[32*k; (4,8)] }

The units of attention under a causal mask walk the blocks of keys up to their diagonal.  While bounds say so,
every operand has an open side: it is masked, padded or staged in all rounds, those that are whole too.

Exact: every iOp runs on what it ran on before.  Loops of which some unit may have no round, or more than
there are, stay (`uir_tvm.igraph.rounds.ended_by_unit`), and so do those that sizes alone end: what runs ahead
of those would have to ask for the end.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
from ..igraph.rounds import ended_by_unit


def run(graph: IGraph) -> IGraph:
    """The graph with such loops; itself where it has none."""
    return ended_by_unit(graph)
