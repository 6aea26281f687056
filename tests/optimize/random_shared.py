# SPDX-License-Identifier: Apache-2.0
"""Random graphs whose units exchange parts of sram tiles, in loops and by group forms; without barriers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, Loop, make, var

UNITS = 4
#: Elements of one unit's part.
PART = 8


class _Builder:
    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.shared: list[IPointer] = []
        self.local: list[IPointer] = []
        self.loops = 0
        self.x = IPointer("x", "dram", "fp32", 128, "in")

    def part(self, pointer: IPointer) -> ISlice:
        """One part for each unit: its own, or that of a neighbour."""
        turn = self.draw(st.sampled_from((0, 0, 0, 1, 3)))
        unit = (var("pid") + turn) % UNITS if turn else var("pid") % UNITS
        return ISlice(pointer, unit * PART, (1, PART))

    def tile(self) -> IPointer:
        self.shared.append(IPointer(f"s{len(self.shared)}", "sram", "fp32", UNITS * PART))
        return self.shared[-1]

    def scratch(self, level: str, size: int) -> IPointer:
        into = self.shared if level == "sram" else self.local
        into.append(IPointer(f"{level[0]}{len(into)}", level, "fp32", size))
        return into[-1]

    def step(self, defined: list[IPointer]) -> list[Any]:
        draw = self.draw
        kind = draw(st.sampled_from(("load", "unary", "unary", "binary", "binary", "group")))
        if kind == "load" or not defined:
            new = self.tile()
            defined.append(new)
            unit = var("pid") * PART + draw(st.integers(0, 64))
            return [make.move(self.part(new), ISlice(self.x, unit, (1, PART)))]
        a, b = draw(st.sampled_from(defined)), draw(st.sampled_from(defined))
        if kind == "group":
            return self.group(a)
        sources = [self.part(a), self.part(b)]
        if draw(st.integers(0, 2)) == 0:
            target = draw(st.sampled_from(defined))
        else:
            target = self.tile()
            defined.append(target)
        if kind == "unary":
            return [make.unary("neg", self.part(target), sources[0])]
        return [make.binary("max", self.part(target), *sources)]

    def group(self, tile: IPointer) -> list[Any]:
        """Every unit gets the greatest element of the parts of its set."""
        size = self.draw(st.sampled_from((2, 4)))
        t, m = self.scratch("reg", PART), self.scratch("reg", 1)
        row, one = ISlice(t, 0, (1, PART)), ISlice(m, 0, (1, 1))
        sets = UNITS // size
        first, second = self.scratch("sram", UNITS), self.scratch("sram", sets)
        chosen = (var("pid") % UNITS) // size
        buffer = ISlice(first, chosen * size, (size, 1))
        back = ISlice(second, chosen, (1, 1))
        mine = ISlice(tile, (var("pid") % UNITS) * PART, (1, PART))
        return [
            make.move(row, mine),
            make.reduce("max", one, row, "row", "group", buffer, size),
            make.broadcast(row, one, "row", "group", back, size),
            make.move(mine, row),
        ]

    def body(self, depth: int, defined: list[IPointer]) -> list[Any]:
        out: list[Any] = []
        for _ in range(self.draw(st.integers(1, 4))):
            if depth and self.draw(st.integers(0, 3)) == 0:
                self.loops += 1
                name = f"k{self.loops}"
                out.append(Loop(name, self.draw(st.integers(1, 3)), self.body(depth - 1, defined)))
            else:
                out.extend(self.step(defined))
        return out


@st.composite
def shared_graphs(draw: Any) -> IGraph:
    """One or two groups of four units; every sram tile is written by all units before it is read."""
    new = _Builder(draw)
    defined: list[IPointer] = []
    body: list[Any] = new.step(defined)
    for _ in range(draw(st.integers(1, 2))):
        body += new.body(2, defined)
    groups = draw(st.integers(1, 2))
    y = IPointer("y", "dram", "fp32", groups * UNITS * PART, "out")
    last = ISlice(draw(st.sampled_from(defined)), (var("pid") % UNITS) * PART, (1, PART))
    body.append(make.move(ISlice(y, var("pid") * PART, (1, PART)), last))
    figures = draw(st.sampled_from(({}, {"sram_align": 4})))
    model = HardwareModel("dev", "test", groups, UNITS, 2**16, 2**16, 32, figures)  # type: ignore[call-arg]
    return IGraph("shared", model, groups, UNITS, [new.x, y, *new.shared, *new.local], body)
