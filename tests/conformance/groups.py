# SPDX-License-Identifier: Apache-2.0
"""Graphs of four units to a group, which hand each other values: group forms, and barriers of all units.

Groups reduce and broadcast in sets of two and of four units (``group_size``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, Loop, make, var
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.igraph.iops import REDUCE

from .cases import DTYPE_NAMES, SUM_TOLERANCE, Operand, values
from .refusals import Refusal, Subject, refusal_of

UNITS, COLS = 4, 24
#: Units that reduce or broadcast together, of the four.
SIZES = (2, 4)


@attrs.frozen
class GroupForm:
    """One graph of four units, and inputs for it."""

    name: str
    make: Callable[[HardwareModel], IGraph]
    dtype: str = "fp32"
    #: Units in a group: with one, units are groups of their own.
    units: int = UNITS
    #: Interval of the values.
    low: float = -4.0
    high: float = 4.0

    def build(self, hardware: HardwareModel) -> tuple[IGraph, list[np.ndarray]]:
        """The graph for some hardware, and inputs in the order of its signature."""
        graph = self.make(hardware)
        (given,) = [p for p in graph.params if p.role == "in"]
        return graph, [values(Operand(self.dtype, "full", self.low, self.high), given.size, 0)]

    @property
    def tolerance(self) -> float:
        """Relative error allowed; 0 for what is no float."""
        return SUM_TOLERANCE.get(self.dtype, 0.0)

    @property
    def subject(self) -> Subject:
        """What the tables of refusals go by."""
        return Subject("group", self.name, self.dtype, (self.dtype,), self.units)

    def refusal(self, target: str) -> Refusal | None:
        """Why a target must refuse it, or None."""
        return refusal_of(target, self.subject)


def _pointers() -> tuple[IPointer, IPointer, IPointer, IPointer]:
    return (
        IPointer("x", "dram", "fp32", UNITS * COLS, "in"),
        IPointer("y", "dram", "fp32", UNITS * COLS, "out"),
        IPointer("tile", "reg", "fp32", COLS, "tmp"),
        IPointer("shared", "sram", "fp32", UNITS, "tmp"),
    )


def _total(hardware: HardwareModel, size: int) -> IGraph:
    """Every element minus the sum of its set's elements: a group's reduce, then its broadcast."""
    x, y, tile, shared = _pointers()
    buffer = ISlice(shared, size * (var("pid") // size), (1, size))
    total, wide = IPointer("total", "reg", "fp32", 1, "tmp"), IPointer("wide", "reg", "fp32", COLS, "tmp")
    row, mine = (1, COLS), COLS * var("pid")
    whole, one = ISlice(tile, 0, row), ISlice(total, 0, (1, 1))
    body = [
        make.move(whole, ISlice(x, mine, row)),
        make.reduce("add", one, whole, "row", "group", buffer, size),
        make.broadcast(ISlice(wide, 0, row), one, "row", "group", buffer, size),
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


def _sets(hardware: HardwareModel, op: str, dtype: str, size: int) -> IGraph:
    """Each row with its set's extreme, sum or product; all sets of a group at the same time."""
    cols, pid = 40, var("pid")
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
        make.binary("xor" if dtype == "bool" else "sub", whole, whole, ISlice(wide, 0, row)),
        make.move(ISlice(y, cols * pid, row), whole),
    ]
    return IGraph("sets", hardware, 2, UNITS, [x, y, tile, wide, part, total, up, down], body)


def _columns(hardware: HardwareModel, size: int) -> IGraph:
    """Sums of columns: every unit of a set adds up its rows, the first one stores the total."""
    rows, cols, pid = 5, COLS, var("pid")
    sets = 2 * UNITS // size
    x = IPointer("x", "dram", "fp32", 2 * UNITS * rows * cols, "in")
    y = IPointer("y", "dram", "fp32", sets * cols, "out")
    tile = IPointer("tile", "reg", "fp32", rows * cols, "tmp")
    part, total = IPointer("part", "reg", "fp32", cols, "tmp"), IPointer("total", "reg", "fp32", cols, "tmp")
    up = IPointer("up", "sram", "fp32", UNITS * cols, "tmp")
    whole, row = ISlice(tile, 0, (rows, cols)), (1, cols)
    first = {"rows": (None, 1 - pid % size)}
    buffer = ISlice(up, size * cols * (pid % UNITS // size), (size, cols))
    body = [
        make.move(whole, ISlice(x, rows * cols * pid, (rows, cols))),
        make.reduce("add", ISlice(part, 0, row), whole, "col"),
        make.reduce("add", ISlice(total, 0, row), ISlice(part, 0, row), "col", "group", buffer, size),
        make.move(ISlice(y, cols * (pid // size), row, **first), ISlice(total, 0, row, **first)),
    ]
    return IGraph("columns", hardware, 2, UNITS, [x, y, tile, part, total, up], body)


def _rows(hardware: HardwareModel, size: int) -> IGraph:
    """Every row of every unit minus the first row of its set's first unit."""
    rows, cols, pid = 3, COLS, var("pid")
    x = IPointer("x", "dram", "fp32", 2 * UNITS * rows * cols, "in")
    y = IPointer("y", "dram", "fp32", 2 * UNITS * rows * cols, "out")
    tile, wide = (IPointer(name, "reg", "fp32", rows * cols, "tmp") for name in ("tile", "wide"))
    down = IPointer("down", "sram", "fp32", UNITS // size * cols, "tmp")
    whole, mine = ISlice(tile, 0, (rows, cols)), rows * cols * pid
    buffer = ISlice(down, cols * (pid % UNITS // size), (1, cols))
    body = [
        make.move(whole, ISlice(x, mine, (rows, cols))),
        make.broadcast(
            ISlice(wide, 0, (rows, cols)), ISlice(tile, 0, (1, cols)), "col", "group", buffer, size
        ),
        make.binary("sub", whole, whole, ISlice(wide, 0, (rows, cols))),
        make.move(ISlice(y, mine, (rows, cols)), whole),
    ]
    return IGraph("rows", hardware, 2, UNITS, [x, y, tile, wide, down], body)


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


#: What sets of units reduce in every run of the tests, in sets of two and of four: every function, and every
#: kind and width of dtype that an exchange could get wrong.
_QUICK = {
    2: (("max", "fp32"), ("add", "fp64"), ("min", "fp16"), ("max", "bf16"), ("add", "int32")),
    4: (("add", "fp32"), ("mul", "fp32"), ("max", "int8"), ("add", "int64"), ("min", "bool")),
}


def _set_form(op: str, dtype: str, size: int) -> GroupForm:
    near_one = (0.8, 1.2) if op == "mul" and DTYPES[dtype].kind == "float" else (-4.0, 4.0)
    name = f"{op} of sets of {size}, {dtype}"
    return GroupForm(name, partial(_sets, op=op, dtype=dtype, size=size), dtype, UNITS, *near_one)


def _forms() -> list[GroupForm]:
    forms = [
        _set_form(op, dtype, size)
        for size in SIZES
        for dtype in DTYPE_NAMES
        for op, row in REDUCE.items()
        if DTYPES[dtype].kind in row.kinds
    ]
    for title, made in (
        ("reduce and broadcast", _total),
        ("sums of columns", _columns),
        ("rows of the first unit", _rows),
    ):
        forms += [GroupForm(f"{title}, sets of {n}", partial(made, size=n)) for n in SIZES]
    forms.append(GroupForm("exchange in a loop", _exchange))
    return [*forms, GroupForm("three phases", _share, units=1)]


#: By name.
GROUP_FORMS: dict[str, GroupForm] = {form.name: form for form in _forms()}
#: What the tests run unless they are asked for all.
QUICK_FORMS: tuple[str, ...] = tuple(name for name in GROUP_FORMS if " of sets of " not in name) + tuple(
    _set_form(op, dtype, size).name for size, rows in _QUICK.items() for op, dtype in rows
)
