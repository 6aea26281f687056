# SPDX-License-Identifier: Apache-2.0
"""Identities vanish: they name memory and do nothing to it.

Before::

    identity [a[0; (4,8); (8,1)]], [a[0; (2,16); (16,1)]]
    move t, t
    unary.exp u, t

After::

    unary.exp u, t

Exact: both sides of an identity are slices of one pointer, so whoever reads or writes one side names the same
bytes as who names the other, with the identity and without it.  A move without pad onto the very elements
that it reads leaves every one of them as it was.
"""

from __future__ import annotations

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp
from .edit import edited
from .flow import facts_of
from .slices import place


def run(graph: IGraph) -> IGraph:
    """The graph without identities and without moves of elements onto themselves."""
    gone = {step.position: None for step in facts_of(graph).steps if _does_nothing(step.iop)}
    return edited(graph, gone)


def _does_nothing(iop: IOp) -> bool:
    if spec_of(iop).renames:
        return True
    if not spec_of(iop).copies:
        return False
    source = iop.sources[0]
    padded = "pad" in iop.attrs and source.valid != (None, None, None, None)
    return not padded and place(source) == place(iop.target)
