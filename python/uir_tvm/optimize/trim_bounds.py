# SPDX-License-Identifier: Apache-2.0
"""Bounds that always hold go, and loops of one round.

Before::

    for k in 1 { fill a[(1,64); cols :s - 64*k] [0.0];  binary.add a[(64,1); rows :s - 64*k; cols :s], a, p }

After, with a size s of at least 1::

    fill a[(1,64); cols :s] [0.0];  binary.add a[(64,1); rows :s], a, p

Schedules of open sizes leave both behind: a loop has the rounds of the greatest size, and conditions of a
tile are on all that the tile meets.  Exact: a bound goes that is the side of the shape for every pid, every
iteration and all sizes.  Loops that ask for something stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..igraph.nodes import IGraph, Loop
from ..igraph.rewrite import substituted
from .needless_bounds import without_needless
from .step_domain import StepDomain


def run(graph: IGraph) -> IGraph:
    """The graph with the bounds and loops that say something; ``graph`` itself where nothing changes."""
    body = _trimmed(graph.body, StepDomain.of(graph))
    return graph if body is None else graph.replace(body=body)


def _trimmed(nodes: Sequence[Any], domain: StepDomain) -> list[Any] | None:
    """The nodes without what says nothing; None where all of it matters."""
    out: list[Any] = []
    changed = False
    for node in nodes:
        if not isinstance(node, Loop):
            trimmed = without_needless(node, domain)
            changed |= trimmed is not node
            out.append(trimmed)
        elif int(node.extent) == 1 and not node.attrs:
            inside = [substituted(each, {str(node.var): 0}) for each in node.body]
            out += _trimmed(inside, domain) or inside
            changed = True
        else:
            body = _trimmed(node.body, domain.inside(str(node.var), int(node.extent)))
            changed |= body is not None
            out.append(node if body is None else Loop(node.var, node.extent, body, node.attrs))
    return out if changed else None
