# SPDX-License-Identifier: Apache-2.0
"""What passes ask of a graph in turn: computed once for the graph that was asked about last."""

from __future__ import annotations

from ..igraph.nodes import IGraph
from ..verify.access import program_of
from .reaching_definitions import Flow


def flow_of(graph: IGraph) -> Flow:
    """Which writes of reg memory its reads see."""
    program = program_of(graph)
    if "flow" not in program.memo:
        program.memo["flow"] = Flow(program)
    flow: Flow = program.memo["flow"]
    return flow


__all__ = ["flow_of", "program_of"]
