# SPDX-License-Identifier: Apache-2.0
"""Random small graphs whose units share memory, and their races by looking at every pair of instances.

The enumeration knows nothing of the analysis: it runs the loop tree once, numbers the moments, and takes
every two accesses of two units.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import strategies as st
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, Loop, make, var

from .graphs import DEVICE

SIZE = 256
S = IPointer("s", "sram", "fp32", SIZE, "tmp")
D = IPointer("d", "dram", "fp32", SIZE, "tmp")
R = IPointer("r", "reg", "fp32", 8, "tmp")
PID = var("pid")


@st.composite
def graphs(draw: Any, max_depth: int = 2) -> IGraph:
    """Fills, reads, moves, group forms and syncs over one sram and one dram pointer, up to seven iOps."""
    groups, units = draw(st.sampled_from([(1, 2), (2, 2), (1, 4), (2, 1), (3, 1), (1, 3), (3, 2)]))
    count = [0]

    def offset(loops: tuple[str, ...]) -> Any:
        e = draw(st.integers(0, 6)) + PID * draw(st.sampled_from([0, 0, 1, 2, 4]))
        if draw(st.integers(0, 3)) == 0:
            e = e + (PID % units) * draw(st.integers(1, 4))
        for name in loops:
            kind = draw(st.sampled_from(["none", "step", "alternate"]))
            if kind == "step":
                e = e + var(name) * draw(st.integers(1, 5))
            elif kind == "alternate":
                e = e + ((var(name) + draw(st.integers(0, 1))) % 2) * draw(st.sampled_from([2, 8]))
        return e

    def piece(pointer: IPointer, shape: tuple[int, int], loops: Any) -> ISlice:
        rows = (None, 2 - PID) if draw(st.integers(0, 5)) == 0 else (None, None)
        return ISlice(pointer, offset(loops), shape, (draw(st.integers(shape[1], 5)), 1), rows=rows)

    def iop(loops: Any) -> IOp:
        count[0] += 1
        kind = draw(st.sampled_from(["fill", "fill", "read", "read", "move", "sync", "sync", "group"]))
        pointer = draw(st.sampled_from([S, S, D]))
        shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)))
        if kind == "sync":
            whole = ISlice(pointer, 0, (1, SIZE))
            return make.sync(whole, whole, draw(st.sampled_from(["reg", "sram", "sram", "dram"])))
        if kind == "group":
            size = draw(st.sampled_from([k for k in (2, 3, 4) if units % k == 0] or [1]))
            buffer = ISlice(S, offset(loops), (1, 4))
            one = ISlice(R, 0, (1, 1))
            if draw(st.booleans()):
                return make.reduce("add", one, one, "row", "group", buffer, size)
            return make.broadcast(one, one, "row", "group", buffer, size)
        if kind == "read":
            mine = piece(pointer, shape, loops)
            return make.move(ISlice(R, 0, shape, rows=mine.valid[:2]), mine)
        if kind == "move":
            target = piece(draw(st.sampled_from([S, D])), shape, loops)
            return make.move(target, piece(pointer, shape, loops).replace(rows=(None, None)))
        return make.fill(piece(pointer, shape, loops), 0.0)

    def body(depth: int, loops: tuple[str, ...]) -> list[Any]:
        out: list[Any] = []
        for _ in range(draw(st.integers(1, 4))):
            if count[0] >= 7:
                break
            if depth and draw(st.integers(0, 2)) == 0:
                name = f"k{len(names)}"
                names.append(name)
                inner = body(depth - 1, (*loops, name))
                if inner:
                    out.append(Loop(name, draw(st.sampled_from([1, 2, 3])), inner))
            else:
                out.append(iop(loops))
        return out

    names: list[str] = []
    return IGraph("g", DEVICE, groups, units, [D, S, R], body(max_depth, ()))


#: (moment, phase), and what stands there: the iOp's position, the loops, the accesses of a unit
Moment = tuple[int, int]


def moments(graph: IGraph) -> list[tuple[int, IOp, dict[str, int]]]:
    """Every instance of an iOp in the order in which they run: (position, iOp, loop values)."""

    def walk(body: Any, env: dict[str, int], at: int) -> Any:
        for node in body:
            if isinstance(node, Loop):
                for value in range(node.extent):
                    yield from walk(node.body, env | {str(node.var): value}, at)
                at += len(list(_iops(node.body)))
            else:
                yield at, node, env
                at += 1

    return list(walk(graph.body, {}, 0))


def _iops(body: Any) -> Any:
    for node in body:
        if isinstance(node, Loop):
            yield from _iops(node.body)
        else:
            yield node


def _touched(iop: IOp, pid: int) -> list[tuple[str, str, ISlice, int]]:
    """(kind, operand, slice, phase) of what one unit does in an iOp, in the order in which it does."""
    if iop.op == "sync":
        return []
    if iop.attrs.get("scope") != "group":
        # of its source a move reads what its target takes
        rows = iop.target.valid[:2]
        reads = [("read", f"source{k}", s.replace(rows=rows), 0) for k, s in enumerate(iop.sources)]
        return [*reads, ("write", "target", iop.target, 0)]
    leads = pid % int(iop.attrs["group_size"]) == 0
    reduce = iop.op == "reduce"
    out = [("read", "source0", iop.sources[0], 1)] if reduce or leads else []
    out += [("write", "buffer", iop.attrs["buffer"], 1)] if reduce or leads else []
    out += [("read", "buffer", iop.attrs["buffer"], 3)] if leads or not reduce else []
    return out + ([("write", "target", iop.target, 3)] if leads or not reduce else [])


def _elements(piece: ISlice, env: dict[str, int]) -> set[int]:
    r0, r1, c0, c1 = piece.valid_box(env)
    base = piece.offset.evaluate(env)
    return {base + i * piece.row_stride + j * piece.col_stride for i in range(r0, r1) for j in range(c0, c1)}


def enumerated(graph: IGraph) -> set[tuple[Any, ...]]:
    """(pointer, earlier access, later access, carried loop, scope) of every race; an access is
    (position, operand, kind)."""
    units, n = int(graph.num_units), int(graph.num_parallel)
    events: list[tuple[Moment, int, int, str, str, str, set[int], dict[str, int], IOp]] = []
    barriers: list[tuple[Moment, int]] = []
    for t, (position, iop, env) in enumerate(moments(graph)):
        size = {"sram": units, "dram": n}.get(iop.attrs["scope"], 1) if iop.op == "sync" else 1
        if iop.attrs.get("scope") == "group":
            size = int(iop.attrs["group_size"])
        barriers.append(((t, 2), size))
        for pid in range(n):
            for rank, (kind, operand, piece, phase) in enumerate(_touched(iop, pid)):
                if piece.pointer.level != "reg":
                    found = _elements(piece, env | {"pid": pid})
                    name = str(piece.pointer.name)
                    events.append(
                        ((t, phase), pid, position * 10 + rank, kind, operand, name, found, env, iop)
                    )
    loops = [[str(loop.var) for loop in around] for _, around in graph.walk()]
    races: set[tuple[Any, ...]] = set()
    for x, y in combinations(events, 2):
        if (y[0], y[2]) < (x[0], x[2]):
            x, y = y, x
        together = x[1] // units == y[1] // units
        if x[1] == y[1] or x[5] != y[5] or "write" not in (x[3], y[3]) or (x[5] == "s" and not together):
            continue
        if not x[6] & y[6]:
            continue
        if any(x[0] < at < y[0] and x[1] // size == y[1] // size for at, size in barriers if size > 1):
            continue
        if x[0] == y[0] and x[3] == y[3] == "write" and x[4] == "buffer" and x[8].op == "reduce":
            if x[1] // int(x[8].attrs["group_size"]) == y[1] // int(x[8].attrs["group_size"]):
                continue  # each has a part of its own
        a, b = x[2] // 10, y[2] // 10
        common = [p for p, q in zip(loops[a], loops[b], strict=False) if p == q]
        carried = next((v for v in common if x[7][v] != y[7][v]), None)
        races.add((x[5], (a, x[4], x[3]), (b, y[4], y[3]), carried, "sram" if together else "dram"))
    return races
