# SPDX-License-Identifier: Apache-2.0
"""Capacity: what is alive at once in reg (per unit) and in sram (per group) fits the hardware model.

A pointer is alive from its first access to its last in the order of the loop tree.  Where it is used
inside a loop and outside, or carries a value from one iteration to the next, it is alive in the whole loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ..errors import VerifyError
from ..igraph.dtypes import bytes_of
from ..igraph.nodes import IPointer
from ..igraph.text import print_iop, print_slice
from .access import Access, Program
from .initialised import covers

#: level -> (field of the hardware model, who has that memory)
MEMORIES = {"reg": ("reg_bytes", "a unit"), "sram": ("sram_bytes", "a group")}


@attrs.frozen
class Live:
    """A pointer with the positions of iOps, first to last, between which it is alive."""

    pointer: IPointer
    accesses: Sequence[Access]
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return int(self.pointer.size) * bytes_of(self.pointer.dtype)


@attrs.frozen
class Peak:
    """The most that is alive at once: the position of the iOp, the bytes, and the pointers, largest first."""

    position: int
    bytes: int
    alive: Sequence[Live]


def check(program: Program) -> Iterator[VerifyError]:
    """Every memory whose peak exceeds what the hardware model has."""
    hardware = program.graph.hardware
    for level, (field, owner) in MEMORIES.items():
        limit = int(getattr(hardware, field))
        top = peak(program, level)
        if top is not None and top.bytes > limit:
            step = program.steps[top.position]
            listed = ", ".join(f"{_largest(a)} {a.bytes} bytes" for a in top.alive)
            yield VerifyError(
                f"The {level} of {owner} overflows: {top.bytes} bytes are alive at once.",
                rule="capacity",
                where=f"{print_iop(step.iop)}, where {len(top.alive)} are alive: {listed}",
                need=f"{top.bytes} bytes of {level}",
                limit=f"{limit} bytes on {hardware.name}",
                remedy=_remedy(top, limit),
            )


def peak(program: Program, level: str) -> Peak | None:
    """The peak of one level; None when no pointer of it is used."""
    spans = _loop_spans(program)
    lives = [
        _life(pointer, program.by_pointer[str(pointer.name)], spans)
        for pointer in program.graph.pointers
        if pointer.level == level and program.by_pointer[str(pointer.name)]
    ]
    best: Peak | None = None
    for at in sorted({x.first for x in lives}):  # the sum only grows where something comes alive
        alive = sorted((x for x in lives if x.first <= at <= x.last), key=lambda x: -x.bytes)
        total = sum(x.bytes for x in alive)
        if best is None or total > best.bytes:
            best = Peak(at, total, alive)
    return best


def _loop_spans(program: Program) -> dict[str, tuple[int, int]]:
    """Positions of the first and last iOp of every loop."""
    out: dict[str, tuple[int, int]] = {}
    for step in program.steps:
        for loop in step.loops:
            first, _ = out.get(str(loop.var), (step.position, 0))
            out[str(loop.var)] = (first, step.position)
    return out


def _life(pointer: IPointer, accesses: Sequence[Access], spans: dict[str, tuple[int, int]]) -> Live:
    first, last = accesses[0].position, accesses[-1].position
    around = {str(loop.var) for a in accesses for loop in a.loops}
    for var in sorted(around, key=lambda v: spans[v][1] - spans[v][0]):
        begin, end = spans[var]
        inside = [a for a in accesses if begin <= a.position <= end]
        if len(inside) < len(accesses) or _carries(inside, var):
            first, last = min(first, begin), max(last, end)
    return Live(pointer, accesses, first, last)


def _carries(accesses: Sequence[Access], var: str) -> bool:
    """Whether a value may pass from one iteration of the loop to the next (always right when it says no)."""
    for read in accesses:
        if read.kind != "read":
            continue
        before = [w for w in accesses if w.kind == "write" and w.position < read.position]
        if not any(w.certain and covers(w, read, within=var) for w in before):
            return True
    return False


def _largest(live: Live) -> str:
    return print_slice(max((a.slice for a in live.accesses), key=lambda s: s.rows * s.cols))


def _remedy(top: Peak, limit: int) -> str:
    piece = max((a.slice for a in top.alive[0].accesses), key=lambda s: s.rows * s.cols)
    rows, cols = int(piece.rows) * limit // top.bytes, int(piece.cols) * limit // top.bytes
    if rows:
        return f"a tile of ({rows}, {piece.cols}) in place of ({piece.rows}, {piece.cols}) would fit"
    if cols:
        return f"a tile of ({piece.rows}, {cols}) in place of ({piece.rows}, {piece.cols}) would fit"
    return "use a smaller tile, or keep the operand in dram"
