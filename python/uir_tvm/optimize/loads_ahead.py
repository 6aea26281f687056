# SPDX-License-Identifier: Apache-2.0
"""What of a loop's body may run iterations ahead: the loads, and the buffers that they need a copy of.

A node of the body (an iOp, or a loop with all in it) may run ahead where it does nothing but fill buffers
of reg or sram from dram, where no iOp before it in the body touches these buffers, where they hold nothing
from one iteration to the next, and where no iOp that it passes writes what it reads.

Where copies on chip have a stage of their own, loads go in two steps: from dram to buffers of sram that
nothing but such copies reads, and *onward* from there to reg, which may run ahead under the same conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import attrs

from ..igraph.iops import mnemonic, spec_of
from ..igraph.nodes import IOp, ISlice, Loop, walk_body
from ..verify import isl
from ..verify.access import Access, GraphFacts
from ..verify.initialised import covers
from ..verify.live_ranges import by_owner, carries, loop_spans

#: iOps that bring elements from dram (or a constant) to where they are computed with.
LOADS = frozenset({"move", "gather", "fill"})


@attrs.frozen
class Stages:
    """The body of a loop, told apart.

    Attributes
    ----------
    ahead : tuple of int
        Indices of the nodes of the body that may run ahead.
    buffers : tuple of str
        The pointers that need a place for every iteration in flight: what is loaded, and what is stored.
    reasons : tuple of str
        Why other moves from dram stay where they are.
    far, onward : tuple of int
        Those of ``ahead`` that fill sram for the nodes ``onward``, which bring it to reg.
    private : frozenset of str
        Pointers of the loop whose values neither enter an iteration nor leave it.
    on_chip : bool
        Whether copies on chip were asked for.
    """

    ahead: tuple[int, ...]
    buffers: tuple[str, ...]
    reasons: tuple[str, ...]
    far: tuple[int, ...] = ()
    onward: tuple[int, ...] = ()
    private: frozenset[str] = frozenset()
    on_chip: bool = False


def stages_of(facts: GraphFacts, loop: Loop, distance: int, on_chip: bool = False) -> Stages:
    """Tell the loads of a loop's body from the rest.

    Parameters
    ----------
    facts : GraphFacts
        Of the graph that has the loop.
    distance : int
        By how many iterations the loads are to run ahead.
    on_chip : bool
        Whether copies from sram to reg may run ahead on their own.
    """
    return _Analysis(facts, loop, distance).run(on_chip)


class _Analysis:
    def __init__(self, facts: GraphFacts, loop: Loop, distance: int) -> None:
        self.facts, self.loop, self.distance = facts, loop, distance
        self.var = str(loop.var)
        self.span = loop_spans(facts)[self.var]
        self.starts = list(_starts(loop.body, self.span[0]))
        self.private: dict[str, bool] = {}

    def run(self, on_chip: bool) -> Stages:
        nodes = [[iop for iop, _ in walk_body([node])] for node in self.loop.body]
        reasons: dict[int, str] = {}
        compute: set[int] = set()
        while True:  # what turns out to stay may touch what others load
            ahead = self._ahead(nodes, compute, reasons)
            loaded = {_name(iop) for k in ahead for iop in nodes[k] if iop.sources}
            idle = {k for k in ahead if not all(_name(iop) in loaded for iop in nodes[k])}
            if not idle:
                break
            compute |= idle
        if not ahead:
            return Stages((), (), tuple(reasons.values()))
        stored = {
            str(iop.sources[0].pointer.name)
            for body in nodes
            for iop in body
            if spec_of(iop).copies and iop.target.pointer.level == "dram"
        }
        far, onward = self._onward(nodes, ahead) if on_chip else ((), ())
        loaded |= {_name(iop) for k in onward for iop in nodes[k]}
        touched = self._touched()
        private = frozenset(name for name in touched if self._is_private(name))
        buffers = tuple(name for name in touched if name in private and (name in loaded or name in stored))
        return Stages(tuple(ahead), buffers, tuple(reasons.values()), far, onward, private, on_chip)

    def _ahead(self, nodes: Sequence[Sequence[IOp]], compute: set[int], reasons: dict[int, str]) -> list[int]:
        ahead: list[int] = []
        touched: set[str] = set()
        for k, body in enumerate(nodes):
            if k not in compute and all(map(_is_load, body)):
                reason = self._reason(k, body, touched)
                if reason is None:
                    ahead.append(k)
                    continue
                reasons[k] = reason
            touched |= {str(piece.pointer.name) for iop in body for piece in _pieces(iop)}
        return ahead

    def _onward(
        self, nodes: Sequence[Sequence[IOp]], ahead: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Loads of sram that wait there for copies to reg alone, and these copies."""
        far = {k for k in ahead if all(iop.target.pointer.level == "sram" for iop in nodes[k])}
        while far:
            waiting = {_name(iop) for k in far for iop in nodes[k]}
            onward = self._copies(nodes, set(ahead), waiting)
            others = [body for k, body in enumerate(nodes) if k not in far and k not in onward]
            used = {str(s.pointer.name) for body in others for iop in body for s in _pieces(iop)}
            read = {str(s.pointer.name) for k in onward for iop in nodes[k] for s in iop.sources}
            kept = {k for k in far if all(_name(iop) in read - used for iop in nodes[k])}
            if kept == far:
                return tuple(sorted(far)), tuple(onward)
            far = kept
        return (), ()

    def _copies(self, nodes: Sequence[Sequence[IOp]], ahead: set[int], waiting: set[str]) -> list[int]:
        """Nodes that bring what waits in sram to reg, for nothing before them in the body."""
        onward: list[int] = []
        touched: set[str] = set()
        for k, body in enumerate(nodes):
            if k in ahead:
                continue
            if body and all(_is_copy(iop, waiting) and self._is_private(_name(iop)) for iop in body):
                if not any(_name(iop) in touched for iop in body):
                    onward.append(k)
                    continue
            touched |= {str(piece.pointer.name) for iop in body for piece in _pieces(iop)}
        return onward

    def _reason(self, index: int, body: Sequence[IOp], touched: set[str]) -> str | None:
        """Why a node of loads has to stay; None where it may run ahead."""
        for iop in body:
            name = _name(iop)
            if name in touched:
                return f"{mnemonic(iop)} loads '{name}', which an iOp before it in the body uses"
            if not self._is_private(name):
                return f"'{name}' holds a value from one iteration to the next, or beyond the loop"
        begin, end = self._positions(index)
        for read in self.facts.accesses:
            if begin <= read.position <= end and read.kind == "read" and read.slice.pointer.level == "dram":
                write = self._overtaken(read)
                if write is not None:
                    return (
                        f"{mnemonic(write.iop)} writes '{read.slice.pointer.name}', which is loaded after it"
                    )
        return None

    def _positions(self, index: int) -> tuple[int, int]:
        """Positions of the first and last iOp of a node of the body."""
        after = self.starts[index + 1] if index + 1 < len(self.starts) else self.span[1] + 1
        return self.starts[index], after - 1

    def _touched(self) -> list[str]:
        """The reg and sram pointers used in the loop, in the order of the graph."""
        begin, end = self.span
        used = {str(a.slice.pointer.name) for a in self.facts.accesses if begin <= a.position <= end}
        return [str(p.name) for p in self.facts.graph.pointers if p.level != "dram" and str(p.name) in used]

    # -- buffers ----------------------------------------------------------------------------------
    def _is_private(self, name: str) -> bool:
        """Whether a pointer's values neither enter an iteration nor leave it."""
        if name not in self.private:
            self.private[name] = self._stays(name)
        return self.private[name]

    def _stays(self, name: str) -> bool:
        accesses = self.facts.by_pointer[name]
        begin, end = self.span
        inside = [a for a in accesses if begin <= a.position <= end]
        outside = [a for a in accesses if not begin <= a.position <= end]
        if not all(a.certain for a in inside if a.kind == "write"):
            return False
        if carries(inside, self.var, int(self.facts.graph.num_units)):
            return False
        around = {str(n.var) for n in self.facts.steps[begin].loops}
        return all(_made_beside(read, outside, self.span, around) for read in outside if read.kind == "read")

    # -- what the loads pass ----------------------------------------------------------------------
    def _overtaken(self, read: Access) -> Access | None:
        """A write in the loop that a load would pass though it writes what is loaded."""
        begin, end = self.span
        for write in self.facts.by_pointer[str(read.slice.pointer.name)]:
            if write.kind == "write" and begin <= write.position <= end:
                if not isl.proved(partial(self._passes_by, read, write)):
                    return write
        return None

    def _passes_by(self, read: Access, write: Access) -> bool:
        """Whether what is loaded in iteration k is not written in iterations k - distance .. k."""
        units = int(self.facts.graph.num_units)
        theirs, ours = by_owner(write, self.var, units), by_owner(read, self.var, units)
        count = 1 + [str(n.var) for n in read.loops].index(self.var)
        first, second = [f"w{k}" for k in range(count)], [f"r{k}" for k in range(count)]
        same = [f"{a} = {b}" for a, b in zip(first[:-1], second[:-1], strict=True)]
        last = f"{second[-1]} - {self.distance} <= {first[-1]} <= {second[-1]}"
        if write.position > read.position:
            last += f" and {first[-1]} < {second[-1]}"
        text = f"{{ [g, {', '.join(first)}] -> [g, {', '.join(second)}] : {' and '.join([*same, last])} }}"
        order = isl.read_map(text)
        return bool(theirs.apply_range(ours.reverse()).intersect(order).is_empty())


def _is_load(iop: IOp) -> bool:
    return (
        iop.op in LOADS
        and iop.target.pointer.level != "dram"
        and all(s.pointer.level == "dram" for s in iop.sources)
    )


def _is_copy(iop: IOp, waiting: set[str]) -> bool:
    return (
        spec_of(iop).copies
        and iop.target.pointer.level == "reg"
        and str(iop.sources[0].pointer.name) in waiting
    )


def _pieces(iop: IOp) -> list[ISlice]:
    """What an iOp touches; a sync, which only names its memory, nothing."""
    return [] if spec_of(iop).barrier else list(iop.slices())


def _name(iop: IOp) -> str:
    return str(iop.target.pointer.name)


def _starts(body: Sequence[Any], at: int) -> Iterator[int]:
    """The position of the first iOp of every node of a body."""
    for node in body:
        yield at
        at += sum(1 for _ in walk_body([node]))


def _made_beside(read: Access, outside: Sequence[Access], span: tuple[int, int], around: set[str]) -> bool:
    """Whether a read outside of a loop gets what was written on its own side of the loop.

    Parameters
    ----------
    around : set of str
        The loops around that loop, itself among them: an iteration of one of them holds the whole loop, so
        that the write must be of the read's own iteration.
    """
    begin, end = span
    for write in outside:
        if write.kind != "write" or not write.certain:
            continue
        if (write.position < begin) != (read.position < begin) or (write.position > end) != (
            read.position > end
        ):
            continue
        shared = [str(a.var) for a, b in zip(read.loops, write.loops, strict=False) if a.var == b.var]
        if any(str(n.var) in around and str(n.var) not in shared for n in read.loops):
            continue
        if covers(write, read, within=shared[-1] if shared else None):
            return True
    return False
