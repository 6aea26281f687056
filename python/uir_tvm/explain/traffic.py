# SPDX-License-Identifier: Apache-2.0
"""Bytes that a kernel's iOps move, per level and direction, and the least that any kernel could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from ..igraph.dtypes import bytes_of
from ..igraph.iops import LEVELS
from ..igraph.nodes import IPointer
from ..verify.access import Access, GraphFacts, Step
from .counting import NONE, Count, distinct, elements, total


@attrs.frozen
class Touch:
    """What one operand of one iOp reads or writes over the whole kernel, in elements."""

    position: int
    operand: str
    pointer: IPointer
    kind: Literal["read", "write"]
    elements: Count

    @property
    def bytes(self) -> Count:
        """The same in bytes."""
        return self.elements.times(bytes_of(self.pointer.dtype))


@attrs.frozen
class LevelTraffic:
    """Bytes that iOps read from one level and write to it; not ``exact``: at most so many."""

    level: str
    read_bytes: int
    written_bytes: int
    exact: bool

    @property
    def bytes(self) -> int:
        """Both directions."""
        return self.read_bytes + self.written_bytes


@attrs.frozen
class PointerTraffic:
    """Bytes moved between one dram pointer and the units, and the least possible.

    Attributes
    ----------
    least_read_bytes, least_written_bytes
        Every element that the kernel reads of an ``in`` or ``inout`` read once, every element that it writes
        of an ``out`` or ``inout`` written once; nothing of a ``tmp``, which need not be in dram.
    exact : bool
        Otherwise the figures are upper bounds: data decides (gather, scatter), or there is too much to count.
    """

    pointer: str
    role: str
    dtype: str
    elements: int
    read_bytes: int
    written_bytes: int
    least_read_bytes: int
    least_written_bytes: int
    exact: bool

    @property
    def bytes(self) -> int:
        """Both directions."""
        return self.read_bytes + self.written_bytes

    @property
    def least_bytes(self) -> int:
        """The least of both directions."""
        return self.least_read_bytes + self.least_written_bytes


@attrs.frozen
class Traffic:
    """All of it: levels outermost first, and every dram pointer in the order of the graph."""

    levels: tuple[LevelTraffic, ...]
    pointers: tuple[PointerTraffic, ...]

    def level(self, name: str) -> LevelTraffic:
        """One level."""
        return next(found for found in self.levels if found.level == name)

    @property
    def dram_bytes(self) -> int:
        """Bytes between dram and the units."""
        return self.level("dram").bytes

    @property
    def least_bytes(self) -> int:
        """The least possible of these."""
        return sum(pointer.least_bytes for pointer in self.pointers)

    @property
    def ratio(self) -> float | None:
        """Moved over least; None where the least is nothing."""
        return self.dram_bytes / self.least_bytes if self.least_bytes else None

    @property
    def exact(self) -> bool:
        """Whether every figure of dram is exact."""
        return self.level("dram").exact and all(pointer.exact for pointer in self.pointers)


def touches(step: Step) -> Iterator[Touch]:
    """What an iOp reads and writes, over all units and iterations.

    A gather reads as many elements of its table as it writes, a scatter writes as many as it reads: at most,
    since indices outside touch nothing.  In a group form every unit (reduce) or the leader (broadcast) writes
    the buffer, and the leader, or every unit, reads that back.
    """
    if not step.spec.touches:
        return
    boxes = {operand: region for operand, _, region in step.operands}
    for access in step.accesses:
        if access.operand != "buffer":
            yield _touch(step, access, _count(step, access))
    if "buffer" in boxes:
        buffer: IPointer = step.iop.attrs["buffer"].pointer
        shared = boxes[step.spec.leads]
        by_all, by_leaders = elements(attrs.evolve(shared, every=1)), elements(shared)
        # the leader of a reduce reads what every unit wrote; every unit of a broadcast what the leader wrote
        written = by_all if step.spec.leads == "target" else by_leaders
        yield Touch(step.position, "buffer", buffer, "write", written)
        yield Touch(step.position, "buffer", buffer, "read", by_all)


def _touch(step: Step, access: Access, count: Count) -> Touch:
    return Touch(step.position, access.operand, access.slice.pointer, access.kind, count)


def _count(step: Step, access: Access) -> Count:
    boxes = {operand: region for operand, _, region in step.operands}
    if access.operand == step.spec.by_data:
        other = "source0" if access.operand == "target" else "target"
        return elements(boxes[other]).at_most()
    rule = step.rule(access.operand)
    if rule is not None and rule.first:
        return elements(access.region, where=attrs.evolve(boxes["target"], every=1))
    return elements(access.region)


def traffic(facts: GraphFacts, found: Sequence[Touch] | None = None) -> Traffic:
    """The traffic of a kernel.

    Parameters
    ----------
    facts : GraphFacts
        Of a graph that passes the verifier's rules up to ``bounds``.
    found : sequence of Touch, optional
        The touches of all its steps, where they are known already.
    """
    found = [t for step in facts.steps for t in touches(step)] if found is None else found
    levels = tuple(_level(level, found) for level in reversed(LEVELS))
    drams = [p for p in facts.graph.pointers if p.level == "dram"]
    return Traffic(levels, tuple(_pointer(facts, p, found) for p in drams))


def _sides(found: Sequence[Touch]) -> tuple[Count, Count]:
    """Bytes read, bytes written."""
    return (
        total(t.bytes for t in found if t.kind == "read"),
        total(t.bytes for t in found if t.kind == "write"),
    )


def _level(level: str, found: Sequence[Touch]) -> LevelTraffic:
    read, written = _sides([t for t in found if t.pointer.level == level])
    return LevelTraffic(level, read.value, written.value, read.exact and written.exact)


def _pointer(facts: GraphFacts, pointer: IPointer, found: Sequence[Touch]) -> PointerTraffic:
    name, role, width = str(pointer.name), str(pointer.role), bytes_of(pointer.dtype)
    mine = [t for t in found if str(t.pointer.name) == name]
    read, written = _sides(mine)
    accesses = facts.by_pointer[name]
    least = {
        kind: _least([a for a in accesses if a.kind == kind], [t for t in mine if t.kind == kind], pointer)
        if role in roles
        else NONE
        for kind, roles in (("read", ("in", "inout")), ("write", ("out", "inout")))
    }
    return PointerTraffic(
        name,
        role,
        str(pointer.dtype),
        int(pointer.size),
        read.value,
        written.value,
        least["read"].value * width,
        least["write"].value * width,
        all(count.exact for count in (read, written, *least.values())),
    )


def _least(accesses: Sequence[Access], mine: Sequence[Touch], pointer: IPointer) -> Count:
    """Elements that have to be touched: each one once; where data decides, no more than asked for."""
    size = int(pointer.size)
    certain = distinct((a.region for a in accesses if a.certain), size)
    uncertain = [a for a in accesses if not a.certain]
    if not uncertain:
        return certain
    asked = {(a.position, a.operand) for a in uncertain}
    most = total(t.elements for t in mine if (t.position, t.operand) in asked)
    return Count(min(certain.value + most.value, size), False)
