# SPDX-License-Identifier: Apache-2.0
"""Group forms: iOps that join the units of a group."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, make, var

UNITS, COLS = 4, 24


@attrs.frozen
class GroupForm:
    """One graph of one group with four units, and inputs for it."""

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


#: By name.
GROUP_FORMS = {"reduce and broadcast": GroupForm(_total, {"uir-cpu": "4 units in a group"})}
