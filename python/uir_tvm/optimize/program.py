# SPDX-License-Identifier: Apache-2.0
"""What passes ask of a graph in turn: computed once for the graph that was asked about last."""

from __future__ import annotations

import threading

from ..igraph.nodes import IGraph
from ..verify.access import Program
from .flow import Flow

_last = threading.local()


def program_of(graph: IGraph) -> Program:
    """The graph's steps and accesses."""
    if getattr(_last, "program", None) is None or _last.program.graph is not graph:
        _last.program, _last.flow = Program(graph), None
    program: Program = _last.program
    return program


def flow_of(graph: IGraph) -> Flow:
    """Which writes of reg memory its reads see."""
    program = program_of(graph)
    if _last.flow is None:
        _last.flow = Flow(program)
    flow: Flow = _last.flow
    return flow
