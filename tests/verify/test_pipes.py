# SPDX-License-Identifier: Apache-2.0
"""Dependences between the pipes of one unit: what a printer has to order, and no more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, Loop, make, var
from uir_tvm.verify import pipes

from tests.corpus import by_hand
from tests.corpus.batched import batched

from .graphs import DEVICE, graph


def pipe_of(iop: IOp) -> str:
    """Loads, stores and all else run on pipes of their own."""
    if iop.op != "move":
        return "V"
    return "MTE2" if iop.sources[0].pointer.level == "dram" else "MTE3"


def told(g: IGraph) -> list[tuple[str, str, str, str, str | None, int | None]]:
    return [
        (pipe_of(d.first.iop), pipe_of(d.second.iop), d.kind, str(d.pointer.name), d.carried, d.distance)
        for d in pipes.dependences(g, pipe_of)
    ]


def stream(load: str = "0", sync: str = "") -> IGraph:
    """Load, compute, store; ``load`` is the offset of the tile in r."""
    return graph(
        f"""
        a = iPointer(dram, fp32, 64, in)
        c = iPointer(dram, fp32, 64, out)
        r = iPointer(reg, fp32, 32)
        t = iPointer(reg, fp32, 8)
        for k in 8 {{
          move.dram.reg.fp32 r[{load}; (1,8); (8,1)], a[8*k; (1,8); (8,1)]
          {sync}
          unary.muls.fp32 t[0; (1,8); (8,1)], r[{load}; (1,8); (8,1)] [2.0]
          {sync}
          move.reg.dram.fp32 c[8*k; (1,8); (8,1)], t[0; (1,8); (8,1)]
          {sync}
        }}""",
        (1, 1),
    )


def test_the_documented_example():
    assert told(stream()) == [
        ("MTE2", "V", "raw", "r", None, None),
        ("V", "MTE2", "war", "r", "k", 1),
        ("V", "MTE3", "raw", "t", None, None),
        ("MTE3", "V", "war", "t", "k", 1),
    ]


def test_buffers_that_alternate_give_the_distance():
    for buffers in (2, 3, 4):
        assert ("V", "MTE2", "war", "r", "k", buffers) in told(stream(f"8*(k % {buffers})"))


def test_a_sync_of_any_scope_orders_the_pipes():
    assert told(stream(sync="sync.reg r[0; (1,32); (32,1)], r[0; (1,32); (32,1)]")) == []


def test_one_pipe_needs_nothing():
    assert pipes.dependences(stream(), lambda iop: "V") == []


def test_units_do_not_depend_on_each_other():
    """Each reads the part of dram that its neighbour wrote: a race, and no matter of pipes."""
    g = graph(
        """
        d = iPointer(dram, fp32, 32)
        r = iPointer(reg, fp32, 8)
        move.reg.dram.fp32 d[8*pid; (1,8); (8,1)], r[0; (1,8); (8,1)]
        move.dram.reg.fp32 r[0; (1,8); (8,1)], d[8*((pid + 1) % 4); (1,8); (8,1)]"""
    )
    assert told(g) == [("MTE3", "MTE2", "war", "r", None, None)]


@pytest.mark.parametrize(
    ("dtype", "address", "ordered"),
    [("fp32", 0, True), ("fp32", 32, False), ("int8", 24, True), ("int8", 32, False)],
)
def test_pointers_that_share_bytes_are_one_memory(dtype, address, ordered):
    """A store still reads r when the next load fills t in its place; of another size, all of it counts."""
    g = graph(
        f"""
        a = iPointer(dram, {dtype}, 64, in)
        c = iPointer(dram, fp32, 64, out)
        r = iPointer(reg, fp32, 8)
        t = iPointer(reg, {dtype}, 8)
        fill.fp32 r[0; (1,8); (8,1)] [0.0]
        move.reg.dram.fp32 c[0; (1,8); (8,1)], r[0; (1,8); (8,1)]
        move.dram.reg.{dtype} t[0; (1,8); (8,1)], a[0; (1,8); (8,1)]"""
    )
    placed = g.replace(attrs={"addresses": {"r": 0, "t": address}})
    war = ("MTE3", "MTE2", "war", "t", None, None)
    assert war not in told(g)
    assert (war in told(placed)) == ordered


# --- random loops against a run --------------------------------------------------------------------

R = IPointer("r", "reg", "fp32", 64, "tmp")
A = IPointer("a", "dram", "fp32", 64, "in")
OUT = IPointer("o", "dram", "fp32", 64, "out")


@st.composite
def loops(draw):
    """Up to five loads into r, fills of it and stores of it, in and around a loop."""

    def iop(inside: bool) -> IOp:
        offset = draw(st.integers(0, 8)) + (var("k") * draw(st.sampled_from([0, 1, 4])) if inside else 0)
        if inside and draw(st.booleans()):
            offset = offset + (var("k") % draw(st.integers(2, 3))) * 8
        shape = (1, draw(st.integers(1, 4)))
        mine, other, out = ISlice(R, offset, shape), ISlice(A, 0, shape), ISlice(OUT, 0, shape)
        return draw(st.sampled_from([make.move(mine, other), make.move(out, mine), make.fill(mine, 0.0)]))

    before, after = ([iop(False) for _ in range(draw(st.integers(0, 1)))] for _ in range(2))
    inner = [iop(True) for _ in range(draw(st.integers(1, 3)))]
    return IGraph("g", DEVICE, 2, 1, [A, OUT, R], [*before, Loop("k", 4, inner), *after])


@settings(max_examples=150, deadline=None)
@given(loops())
def test_random_loops_agree_with_a_run(g):
    assert {
        (d.first.position, d.second.position, d.kind, d.carried, d.distance)
        for d in pipes.dependences(g, pipe_of)
        if str(d.pointer.name) == "r"
    } == _by_run(g)


def _by_run(g: IGraph) -> set[tuple[int, int, str, str | None, int | None]]:
    ran = []
    position = 0
    for node in g.body:
        body = node.body if isinstance(node, Loop) else [node]
        for k in range(node.extent if isinstance(node, Loop) else 1):
            for at, iop in enumerate(body):
                for kind, piece in (("write", iop.target), *(("read", s) for s in iop.sources)):
                    if str(piece.pointer.name) == "r":
                        base = piece.offset.evaluate({"k": k, "pid": 0})
                        inside = k if isinstance(node, Loop) else None
                        ran.append(
                            (position + at, pipe_of(iop), kind, set(range(base, base + piece.cols)), inside)
                        )
        position += len(body)
    kinds = {("write", "read"): "raw", ("read", "write"): "war", ("write", "write"): "waw"}
    found: dict[tuple, int | None] = {}
    for i, x in enumerate(ran):
        for y in ran[i + 1 :]:
            if x[1] == y[1] or (x[2], y[2]) not in kinds or not x[3] & y[3]:
                continue
            distance = y[4] - x[4] if None not in (x[4], y[4]) and y[4] != x[4] else None
            key = (x[0], y[0], kinds[x[2], y[2]], "k" if distance else None)
            found[key] = min(found.get(key) or 99, distance) if distance else None
    direct = {key[:2] for key in found if key[3] is None}
    return {(*key, d) for key, d in found.items() if key[3] is None or key[:2] not in direct}


@pytest.mark.parametrize("entry", list(by_hand.entries()), ids=lambda entry: entry.name)
def test_for_any_number_of_inputs_a_unit_waits_for_the_same(entry):
    def told(graph: IGraph) -> set[tuple[object, ...]]:
        return {
            (d.first.position, d.second.position, d.kind, str(d.pointer.name), d.carried, d.distance)
            for d in pipes.dependences(graph, lambda iop: iop.op)
        }

    assert told(batched(entry.graph)) == told(entry.graph)
