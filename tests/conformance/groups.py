# SPDX-License-Identifier: Apache-2.0
"""Graphs whose units hand each other values: group forms, and barriers of all units."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, Loop, make, var
from uir_tvm.igraph.dtypes import numpy_of

UNITS, COLS = 4, 24


@attrs.frozen
class GroupForm:
    """One graph of four units, and inputs for it."""

    make: Callable[[HardwareModel], IGraph]
    #: Part of the message with which a target refuses, by target.
    refused: dict[str, str]

    def build(self, hardware: HardwareModel) -> tuple[IGraph, list[np.ndarray]]:
        """The graph for some hardware, and inputs in the order of its signature."""
        rng = np.random.default_rng(0)
        graph = self.make(hardware)
        (given,) = [p for p in graph.params if p.role == "in"]
        return graph, [rng.uniform(-4, 4, given.size).astype(numpy_of(given.dtype))]


def _pointers() -> tuple[IPointer, IPointer, IPointer, IPointer]:
    return (
        IPointer("x", "dram", "fp32", UNITS * COLS, "in"),
        IPointer("y", "dram", "fp32", UNITS * COLS, "out"),
        IPointer("tile", "reg", "fp32", COLS, "tmp"),
        IPointer("shared", "sram", "fp32", UNITS, "tmp"),
    )


def _total(hardware: HardwareModel) -> IGraph:
    """Every element minus the sum of all units' elements: a group's reduce, then its broadcast."""
    x, y, tile, shared = _pointers()
    total, wide = IPointer("total", "reg", "fp32", 1, "tmp"), IPointer("wide", "reg", "fp32", COLS, "tmp")
    row, mine = (1, COLS), COLS * var("pid")
    whole, one = ISlice(tile, 0, row), ISlice(total, 0, (1, 1))
    body = [
        make.move(whole, ISlice(x, mine, row)),
        make.reduce("add", one, whole, "row", "group", ISlice(shared, 0, (1, UNITS)), UNITS),
        make.broadcast(ISlice(wide, 0, row), one, "row", "group", ISlice(shared, 0, (1, UNITS)), UNITS),
        make.binary("sub", whole, whole, ISlice(wide, 0, row)),
        make.move(ISlice(y, mine, row), whole),
    ]
    return IGraph("total", hardware, 1, UNITS, [x, y, tile, shared, total, wide], body)


def _share(hardware: HardwareModel) -> IGraph:
    """Every element over the sum of all magnitudes, in three phases with barriers of all units between."""
    x, y, tile, _ = _pointers()
    part, sums = IPointer("part", "dram", "fp32", UNITS, "tmp"), IPointer("sums", "reg", "fp32", UNITS, "tmp")
    total, wide = IPointer("total", "dram", "fp32", 1, "tmp"), IPointer("wide", "reg", "fp32", COLS, "tmp")
    one = IPointer("one", "reg", "fp32", 1, "tmp")
    row, mine, pid = (1, COLS), COLS * var("pid"), var("pid")
    whole, spread, single = ISlice(tile, 0, row), ISlice(wide, 0, row), ISlice(one, 0, (1, 1))
    parts, first = ISlice(part, 0, (1, UNITS)), {"rows": (None, 1 - pid)}
    body = [
        make.move(whole, ISlice(x, mine, row)),
        make.unary("abs", spread, whole),
        make.reduce("add", single, spread, "row"),
        make.move(ISlice(part, pid, (1, 1)), single),
        make.sync(parts, parts, "dram"),
        make.move(ISlice(sums, 0, (1, UNITS)), parts),
        make.reduce("add", single, ISlice(sums, 0, (1, UNITS)), "row"),
        make.move(ISlice(total, 0, (1, 1), **first), single.replace(**first)),
        make.sync(ISlice(total), ISlice(total), "dram"),
        make.move(single, ISlice(total)),
        make.broadcast(spread, single, "row"),
        make.move(whole, ISlice(x, mine, row)),
        make.binary("div", whole, whole, spread),
        make.move(ISlice(y, mine, row), whole),
    ]
    return IGraph("share", hardware, UNITS, 1, [x, y, part, total, tile, wide, one, sums], body)


def _sets(hardware: HardwareModel, op: str, dtype: str) -> IGraph:
    """Pairs of units: each row over its pair's extreme or sum; two sets of a group at the same time."""
    cols, pid, size = 40, var("pid"), 2
    x = IPointer("x", "dram", dtype, 2 * UNITS * cols, "in")
    y = IPointer("y", "dram", dtype, 2 * UNITS * cols, "out")
    tile, wide = IPointer("tile", "reg", dtype, cols, "tmp"), IPointer("wide", "reg", dtype, cols, "tmp")
    part, total = IPointer("part", "reg", dtype, 1, "tmp"), IPointer("total", "reg", dtype, 1, "tmp")
    up, down = IPointer("up", "sram", dtype, UNITS, "tmp"), IPointer("down", "sram", dtype, 2, "tmp")
    whole, one, row = ISlice(tile, 0, (1, cols)), ISlice(total, 0, (1, 1)), (1, cols)
    number = pid % UNITS // size
    body = [
        make.move(whole, ISlice(x, cols * pid, row)),
        make.reduce(op, ISlice(part, 0, (1, 1)), whole, "row"),
        make.reduce(
            op, one, ISlice(part, 0, (1, 1)), "row", "group", ISlice(up, size * number, (1, size)), size
        ),
        make.broadcast(one, one, "row", "group", ISlice(down, number, (1, 1)), size),
        make.broadcast(ISlice(wide, 0, row), one, "row"),
        make.binary("sub", whole, whole, ISlice(wide, 0, row)),
        make.move(ISlice(y, cols * pid, row), whole),
    ]
    return IGraph("sets", hardware, 2, UNITS, [x, y, tile, wide, part, total, up, down], body)


def _columns(hardware: HardwareModel) -> IGraph:
    """Sums of columns: every unit of a set of four adds up its rows, the first one stores the total."""
    rows, cols, pid = 5, COLS, var("pid")
    x = IPointer("x", "dram", "fp32", 2 * UNITS * rows * cols, "in")
    y = IPointer("y", "dram", "fp32", 2 * cols, "out")
    tile, part = (
        IPointer("tile", "reg", "fp32", rows * cols, "tmp"),
        IPointer("part", "reg", "fp32", cols, "tmp"),
    )
    total = IPointer("total", "reg", "fp32", cols, "tmp")
    up = IPointer("up", "sram", "fp32", UNITS * cols, "tmp")
    whole, row = ISlice(tile, 0, (rows, cols)), (1, cols)
    first = {"rows": (None, 1 - pid % UNITS)}
    buffer = ISlice(up, 0, (UNITS, cols))
    body = [
        make.move(whole, ISlice(x, rows * cols * pid, (rows, cols))),
        make.reduce("add", ISlice(part, 0, row), whole, "col"),
        make.reduce("add", ISlice(total, 0, row), ISlice(part, 0, row), "col", "group", buffer, UNITS),
        make.move(ISlice(y, cols * (pid // UNITS), row, **first), ISlice(total, 0, row, **first)),
    ]
    return IGraph("columns", hardware, 2, UNITS, [x, y, tile, part, total, up], body)


def _exchange(hardware: HardwareModel) -> IGraph:
    """Every unit reads the tile that its neighbour staged in sram, in a loop: barriers before and after."""
    pid, step, rounds = var("pid"), var("step"), 3
    x = IPointer("x", "dram", "fp32", rounds * UNITS * COLS, "in")
    y = IPointer("y", "dram", "fp32", rounds * UNITS * COLS, "out")
    staged = IPointer("staged", "sram", "fp32", UNITS * COLS, "tmp")
    tile, row = IPointer("tile", "reg", "fp32", COLS, "tmp"), (1, COLS)
    mine = COLS * pid + UNITS * COLS * step
    everything = ISlice(staged, 0, (1, UNITS * COLS))
    inside = [
        make.move(ISlice(staged, COLS * pid, row), ISlice(x, mine, row)),
        make.sync(everything, everything, "sram"),
        make.move(ISlice(tile, 0, row), ISlice(staged, COLS * ((pid + 1) % UNITS), row)),
        make.move(ISlice(y, mine, row), ISlice(tile, 0, row)),
        make.sync(everything, everything, "sram"),
    ]
    return IGraph("exchange", hardware, 1, UNITS, [x, y, staged, tile], [Loop("step", rounds, inside)])


_NO_GROUPS = {"uir-cpu": "4 units in a group"}

#: What pairs of units reduce.
PAIRS = (("max", "fp32"), ("add", "fp64"), ("min", "fp16"), ("max", "bf16"), ("add", "int32"))

#: By name.
GROUP_FORMS = {
    **{
        f"{op} of pairs, {dtype}": GroupForm(lambda hw, op=op, dtype=dtype: _sets(hw, op, dtype), _NO_GROUPS)
        for op, dtype in (
            ("max", "fp32"),
            ("add", "fp64"),
            ("min", "fp16"),
            ("max", "bf16"),
            ("add", "int32"),
        )
    },
    "sums of columns": GroupForm(_columns, _NO_GROUPS),
    "exchange in a loop": GroupForm(_exchange, _NO_GROUPS),
    "reduce and broadcast": GroupForm(_total, {"uir-cpu": "4 units in a group"}),
    "three phases": GroupForm(_share, {}),
}
