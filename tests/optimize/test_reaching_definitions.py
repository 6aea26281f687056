# SPDX-License-Identifier: Apache-2.0
"""What reads may see, against what they do see when the loop tree is run element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.optimize import reaching_definitions
from uir_tvm.optimize.reaching_definitions import Flow
from uir_tvm.verify.access import GraphFacts

from .pairs import HARDWARE

HOST = parse_igraph(f"{HARDWARE}\nigraph g on toy parallel (1, 1) {{}}").hardware
REGS = [IPointer(name, "reg", "fp32", 8) for name in "ab"]


@st.composite
def programs(draw: Any) -> IGraph:
    """Fills, copies and in-place updates of pieces of two registers, some masked, in nested loops."""
    counter = iter(range(100))

    def piece(loops: Sequence[str], width: int) -> ISlice:
        offset = affine(draw(st.sampled_from((0, 0, 2, 4))))
        if loops and width == 2 and draw(st.booleans()):
            offset = affine(0) + var(draw(st.sampled_from(loops))) * 2
        end = None
        if loops and draw(st.integers(0, 3)) == 0:
            end = var(draw(st.sampled_from(loops))) + 1
        return ISlice(draw(st.sampled_from(REGS)), offset, (1, width), cols=(None, end))

    def body(depth: int, loops: tuple[str, ...]) -> list[Any]:
        out: list[Any] = []
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(("fill", "move", "adds", "loop" if depth else "fill")))
            if kind == "loop":
                name = f"l{next(counter)}"
                out.append(Loop(name, draw(st.integers(1, 3)), body(depth - 1, (*loops, name))))
                continue
            width = draw(st.sampled_from((2, 4)))
            target, source = piece(loops, width), piece(loops, width)
            out.append(
                make.fill(target, 1.0)
                if kind == "fill"
                else make.move(target, source)
                if kind == "move"
                else make.unary("adds", target, source, [1.0])
            )
        return out

    first = [make.fill(ISlice(r, 0, (1, 8)), 0.0) for r in REGS]
    return IGraph("g", HOST, 1, 1, REGS, [*first, *body(2, ())])


def seen(graph: IGraph) -> dict[int, set[tuple[int, bool]]]:
    """Position of a reader -> what it sees: (position of the writer, of the same iteration)."""
    owner: dict[tuple[str, int], tuple[int, tuple[tuple[str, int], ...]]] = {}
    out: dict[int, set[tuple[int, bool]]] = {}

    def elements(s: ISlice, box: tuple[int, int, int, int], env: dict[str, int]) -> list[tuple[str, int]]:
        return [(str(s.pointer.name), s.offset.evaluate(env) + j) for j in range(box[2], box[3])]

    def run(body: Sequence[Any], env: dict[str, int], at: int) -> int:
        for node in body:
            if isinstance(node, Loop):
                for value in range(node.extent):
                    end = run(node.body, {**env, str(node.var): value}, at)
                at = end
                continue
            assert isinstance(node, IOp)
            box = node.target.valid_box(env)
            for s in node.sources:
                own = s.valid_box(env)
                for element in elements(s, (0, 1, max(box[2], own[2]), min(box[3], own[3])), env):
                    position, around = owner[element]
                    same = all(env.get(v) == value for v, value in around)
                    out.setdefault(at, set()).add((position, same))
            for element in elements(node.target, box, env):
                owner[element] = (at, tuple(env.items()))
            at += 1
        return at

    run(graph.body, {"pid": 0}, 0)
    return out


@settings(max_examples=200, deadline=None)
@given(programs())
def test_every_read_sees_only_what_flow_says(graph: IGraph) -> None:
    flow = Flow(GraphFacts(graph))
    said: dict[int, dict[int, bool]] = {}
    for position, uses in flow.uses.items():
        for use in uses:
            said.setdefault(use.access.position, {})[position] = use.sole
    for reader, writers in seen(graph).items():
        assert {position for position, _ in writers} <= set(said[reader])
        for position, same in writers:
            assert same or not said[reader][position], "sole means the same iteration"
        if any(said[reader].values()):
            assert len(writers) == 1


def positions(graph: IGraph) -> dict[int, list[tuple[int, bool]]]:
    """What is read of each write: (position of the reader, whether nothing else is seen)."""
    return {
        at: [(u.access.position, u.sole) for u in uses] for at, uses in Flow(GraphFacts(graph)).uses.items()
    }


def test_only_pointers_whose_accesses_changed_are_walked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others the same is said, at the positions where their iOps stand now."""
    a, b = (ISlice(r, 0, (1, 8)) for r in REGS)
    nodes = [make.fill(a, 0.0), make.fill(b, 1.0), make.unary("exp", b, b), make.move(a, a)]
    walked: list[str] = []

    class Walk(reaching_definitions._PointerWalk):
        def __init__(self, accesses: Any, *args: Any) -> None:
            walked.append(str(accesses[0].slice.pointer.name))
            super().__init__(accesses, *args)

    monkeypatch.setattr(reaching_definitions, "_PointerWalk", Walk)

    def build(body: Sequence[Any]) -> IGraph:
        return IGraph("g", HOST, 1, 1, REGS, body)

    assert positions(build(nodes)) == {0: [(3, True)], 1: [(2, True)]}
    assert sorted(walked) == ["a", "b"]
    assert positions(build([nodes[1], nodes[0], nodes[2], nodes[2], nodes[3]])) == {
        0: [(2, True)],
        1: [(4, True)],
        2: [(3, True)],
    }
    assert sorted(walked) == ["a", "b", "b"]
