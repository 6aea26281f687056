# SPDX-License-Identifier: Apache-2.0
"""What passes ask of a graph in turn: computed once for the graph that was asked about last."""

from __future__ import annotations

from ..igraph.nodes import IGraph
from ..verify.access import facts_of
from .reaching_definitions import Flow


def flow_of(graph: IGraph) -> Flow:
    """Which writes of reg memory its reads see."""
    facts = facts_of(graph)
    if "flow" not in facts.memo:
        facts.memo["flow"] = Flow(facts)
    flow: Flow = facts.memo["flow"]
    return flow


__all__ = ["flow_of", "facts_of"]
