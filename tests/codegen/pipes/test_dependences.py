# SPDX-License-Identifier: Apache-2.0
"""Graphs of recipes and by hand: planned syncs cover every dependence that the verifier proves.

`uir_tvm.verify.pipes` decides by integer sets over the graph; here the same graph is planned as instructions
on the three pipes of a vector core and run event by event.
"""

from __future__ import annotations

from typing import Any

import pytest
from uir_tvm.igraph import IGraph, IOp, ISlice, Loop
from uir_tvm.igraph.dtypes import bytes_of
from uir_tvm.optimize import allocate, multibuffer
from uir_tvm.verify import pipes
from uir_tvm.verify.access import GraphFacts

from ...corpus import by_hand, recipes
from .kernel import Data, at, loop, op, plan
from .simulator import findings, ordered

#: Graphs that one vector core can run: no memory is shared, and so short that every event can be looked at.
MOST = 300


def pipe_of(iop: IOp) -> str:
    if iop.op != "move":
        return "V"
    levels = iop.sources[0].pointer.level, iop.target.pointer.level
    return "MTE2" if levels[0] == "dram" else "MTE3" if levels[1] == "dram" else "V"


def _region(piece: ISlice, graph: IGraph) -> Data:
    size = bytes_of(piece.pointer.dtype)
    place = graph.attrs.get("addresses", {}).get(str(piece.pointer.name), 0)
    memory = "ub" if piece.pointer.level == "reg" else str(piece.pointer.name)
    dims = [(int(piece.rows), int(piece.row_stride) * size), (int(piece.cols), int(piece.col_stride) * size)]
    return at(piece.offset * size + int(place), size, memory, dims)


def _body(nodes: Any, graph: IGraph) -> list[Data]:
    """Each iOp is one instruction; a reduction or a gather reads what its slices span."""
    body: list[Data] = []
    for node in nodes:
        if isinstance(node, Loop):
            body.append(loop(str(node.var), int(node.extent), *_body(node.body, graph)))
        else:
            accumulates = [*node.targets] if node.attrs.get("accumulate") else []
            reads = [*node.sources, *accumulates]
            body.append(
                op(
                    pipe_of(node),
                    [_region(t, graph) for t in node.targets],
                    [_region(s, graph) for s in reads],
                )
            )
    return body


def _iterations(nodes: Any) -> int:
    return sum(int(n.extent) * _iterations(n.body) if isinstance(n, Loop) else 1 for n in nodes)


def _candidates() -> dict[str, IGraph]:
    graphs = {entry.name: entry.graph for entry in by_hand.entries()}
    graphs.update(
        {f"{case} on {of}": recipes.graph(case, of) for case, of in recipes.pairs() if of != "grid"}
    )
    return {
        name: graph
        for name, graph in graphs.items()
        if all(p.level != "sram" for p in graph.pointers)
        and all(step.iop.op not in ("sync", "identity", "scatter") for step in GraphFacts(graph).steps)
        and _iterations(graph.body) <= MOST
    }


CANDIDATES = _candidates()


def test_there_are_graphs_of_many_kinds():
    assert len(CANDIDATES) >= 20


@pytest.mark.parametrize("name", CANDIDATES)
def test_planned_syncs_cover_the_dependences(name):
    graph = allocate.run(multibuffer.run(CANDIDATES[name]))
    body = _body(graph.body, graph)
    planned = plan(*body)
    env = {"pid": 0}
    assert findings(body, planned, first=True, env=env) == []
    for sync in planned["report"]:
        assert findings(body, planned, without=int(sync["number"]), first=True, env=env), sync
    holds = ordered(body, planned, env)
    for d in pipes.dependences(graph, pipe_of):
        distance = (d.distance or 1) if d.carried is not None else 0
        assert holds(d.first.position, d.second.position, d.carried, distance), d
