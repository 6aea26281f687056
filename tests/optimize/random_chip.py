# SPDX-License-Identifier: Apache-2.0
"""Random graphs of one unit that use registers in every way: nested loops, accumulators, reuse, offsets."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from uir_tvm.igraph import HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, make

DTYPES = ("fp32", "fp64", "int32")


def _row(pointer: IPointer, offset: int, count: int) -> ISlice:
    return ISlice(pointer, offset, (1, count))


class _Builder:
    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.regs: list[IPointer] = []
        self.loops = 0
        self.inputs = {d: IPointer(f"x_{d}", "dram", d, 64, "in") for d in DTYPES}

    def pointer(self, dtype: str, size: int) -> IPointer:
        self.regs.append(IPointer(f"r{len(self.regs)}", "reg", dtype, size))
        return self.regs[-1]

    def load(self, defined: list[IPointer]) -> IOp:
        dtype = self.draw(st.sampled_from(DTYPES))
        new = self.pointer(dtype, self.draw(st.sampled_from((3, 8, 16, 20))))
        defined.append(new)
        source = _row(self.inputs[dtype], self.draw(st.integers(0, 40)), int(new.size))
        return make.move(_row(new, 0, int(new.size)), source)

    def compute(self, defined: list[IPointer]) -> IOp:
        """From defined pointers into a new one (all of it) or a part of a defined one."""
        draw = self.draw
        a = draw(st.sampled_from(defined))
        alike = [p for p in defined if p.dtype == a.dtype]
        b = draw(st.sampled_from(alike))
        kind = draw(st.sampled_from(("binary", "binary", "unary", "move", "cast")))
        count = min(int(a.size), int(b.size)) if kind == "binary" else int(a.size)
        dtype = draw(st.sampled_from([d for d in DTYPES if d != a.dtype])) if kind == "cast" else str(a.dtype)
        olds = [p for p in defined if p.dtype == dtype and int(p.size) >= count]
        if olds and draw(st.integers(0, 2)) == 0:
            target = draw(st.sampled_from(olds))
        else:
            target = self.pointer(dtype, count)
            defined.append(target)

        def part(p: IPointer) -> ISlice:
            return _row(p, draw(st.integers(0, int(p.size) - count)), count)

        t = part(target)
        if kind == "binary":
            return make.binary("max", t, part(a), part(b))
        if kind == "cast":
            return make.cast(t, part(a))
        return make.move(t, part(a)) if kind == "move" else make.unary("abs", t, part(a))

    def body(self, depth: int, defined: list[IPointer]) -> list[Any]:
        out: list[Any] = []
        for _ in range(self.draw(st.integers(1, 5))):
            if depth and self.draw(st.integers(0, 3)) == 0:
                self.loops += 1
                name = f"k{self.loops}"
                out.append(Loop(name, self.draw(st.integers(1, 3)), self.body(depth - 1, defined)))
            elif not defined or self.draw(st.integers(0, 3)) == 0:
                out.append(self.load(defined))
            else:
                out.append(self.compute(defined))
        return out


@st.composite
def register_graphs(draw: Any) -> IGraph:
    """A graph whose every register is written before it is read, and whose results are some of them."""
    new = _Builder(draw)
    defined: list[IPointer] = []
    body: list[Any] = [new.load(defined)]
    for _ in range(draw(st.integers(1, 3))):
        body += new.body(2, defined)
    kept = draw(st.lists(st.sampled_from(defined), min_size=1, max_size=3, unique_by=lambda p: str(p.name)))
    outs = []
    for k, p in enumerate(kept):
        outs.append(IPointer(f"y{k}", "dram", p.dtype, p.size, "out"))
        body.append(make.move(_row(outs[-1], 0, int(p.size)), _row(p, 0, int(p.size))))
    used = {str(s.pointer.name) for s in _slices(body)}
    params = [p for p in new.inputs.values() if str(p.name) in used]
    figures = draw(st.sampled_from(({}, {"reg_align": 4}, {"reg_align": 1}, {"reg_align": 32})))
    model = HardwareModel("host", "cpu", 1, 1, 2**20, 0, 16, figures)  # type: ignore[call-arg]
    return IGraph("random", model, 1, 1, [*params, *outs, *new.regs], body)


def _slices(body: list[Any]) -> Any:
    for node in body:
        if isinstance(node, Loop):
            yield from _slices(list(node.body))
        else:
            yield from node.slices()
