# SPDX-License-Identifier: Apache-2.0
"""Graphs whose units hand each other values: group forms, and barriers of all units."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, make, var

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
        return self.make(hardware), [rng.uniform(-2, 2, UNITS * COLS).astype(np.float32)]


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


#: By name.
GROUP_FORMS = {
    "reduce and broadcast": GroupForm(_total, {"uir-cpu": "4 units in a group"}),
    "three phases": GroupForm(_share, {}),
}
