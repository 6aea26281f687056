# SPDX-License-Identifier: Apache-2.0
"""Addresses for the pointers of one memory: which may share a place, and a placement with a low peak.

Two pointers share bytes only where their live ranges do not meet.  An iOp that works element by element
is the exception: its output may take exactly the place of an input that dies there.  In sram that several
units share, a live range ends for all units only at a barrier: pointers share there only where a barrier
stands between the last access of the one and the first of the other, around every loop too.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from ..igraph.nodes import HardwareModel
from .access import GraphFacts
from .in_place import in_place
from .live_ranges import Live, lives, loop_spans

#: level -> (field of the hardware model, figure that holds its alignment, who has that memory)
MEMORIES = {
    "reg": ("reg_bytes", "reg_align", "a unit"),
    "sram": ("sram_bytes", "sram_align", "a group"),
}

#: Up to this many pointers every order of placing them is tried where the usual ones are not optimal.
EXHAUSTIVE = 6


@attrs.frozen
class Placement:
    """Byte offsets of the pointers of one memory.

    Attributes
    ----------
    addresses : dict of str to int
    peak : int
        The end of the highest pointer, in bytes.
    """

    addresses: dict[str, int]
    peak: int


@attrs.frozen
class Peak:
    """Where the most is alive: the position of the iOp, the bytes, and what is alive there, largest first."""

    position: int
    bytes: int
    alive: Sequence[Live]


def alignment(hardware: HardwareModel, level: str) -> int:
    """Bytes that every address of a level is a multiple of: the model's figure, by default one vector."""
    figure = MEMORIES[level][1]
    return max(1, int(hardware.figures[figure] if figure in hardware.figures else hardware.vector_bytes))


def sram_bytes(hardware: HardwareModel, num_units: int) -> int:
    """Bytes of sram of a group of so many units; 0 where groups of fewer than ``sram_units`` have none."""
    enough = num_units >= int(hardware.figures.get("sram_units", 1))
    return int(hardware.sram_bytes) if enough else 0


@attrs.frozen(eq=False)
class Interference:
    """The live ranges of one level, and which of them may meet.

    Attributes
    ----------
    ranges : sequence of Live
    apart : sequence of set of int
        For each range those that it never shares a byte with.
    shared : mapping of (int, int) to int
        (input, output) -> by how many bytes the output's address exceeds the input's if it takes its
        place; otherwise they keep apart as well.
    align : int
    """

    ranges: Sequence[Live]
    apart: Sequence[set[int]]
    shared: Mapping[tuple[int, int], int]
    align: int

    @staticmethod
    def of(facts: GraphFacts, level: str) -> Interference:
        """The memory of a level, as the graph uses it; several rules and passes ask for it."""
        key = ("memory", level)
        if key not in facts.memo:
            facts.memo[key] = Interference._read(facts, level)
        found: Interference = facts.memo[key]
        return found

    @staticmethod
    def _read(facts: GraphFacts, level: str) -> Interference:
        ranges = lives(facts, level)
        order = _Barriers(facts) if level == "sram" and int(facts.graph.num_units) > 1 else None
        apart: list[set[int]] = [set() for _ in ranges]
        shared: dict[tuple[int, int], int] = {}
        for i, j in itertools.combinations(range(len(ranges)), 2):
            a, b = (i, j) if ranges[i].first <= ranges[j].first else (j, i)
            x, y = ranges[a], ranges[b]
            if x.last < y.first:
                if order is not None and not order.separates(x, y):
                    apart[a].add(b)
                    apart[b].add(a)
                continue
            delta = in_place(facts, x, y)
            if delta is not None:
                shared[a, b] = delta
            else:
                apart[a].add(b)
                apart[b].add(a)
        return Interference(ranges, apart, shared, alignment(facts.graph.hardware, level))

    def from_start(self, names: Collection[str]) -> Interference:
        """The same where some pointers share no byte with what was alive before them either."""
        early = {k for k, x in enumerate(self.ranges) if x.name in names}

        def is_before(i: int, j: int) -> bool:
            return j in early and self.ranges[i].first <= self.ranges[j].first

        apart = [
            own | {j for j in range(len(self.ranges)) if j != i and (is_before(i, j) or is_before(j, i))}
            for i, own in enumerate(self.apart)
        ]
        shared = {pair: delta for pair, delta in self.shared.items() if pair[1] not in apart[pair[0]]}
        return attrs.evolve(self, apart=apart, shared=shared)

    def sizes(self) -> list[int]:
        """Bytes of every range."""
        return [x.bytes for x in self.ranges]

    def most_alive(self, sizes: Sequence[int] | None = None) -> Peak | None:
        """The most bytes that are alive at once, an output in the place of a dying input counted once."""
        sizes = self.sizes() if sizes is None else sizes
        best: Peak | None = None
        for at in sorted({x.first for x in self.ranges}):  # the sum only grows where something comes alive
            alive = [i for i, x in enumerate(self.ranges) if x.first <= at <= x.last]
            total = sum(sizes[i] for i in alive) - self._saved(at, sizes)
            if best is None or total > best.bytes:
                ordered = sorted(alive, key=lambda i: -sizes[i])
                best = Peak(at, total, [self.ranges[i] for i in ordered])
        return best

    def _least(self, sizes: Sequence[int]) -> int:
        """Bytes that no placement stays below: what is alive at once takes whole multiples of the alignment.

        Only the highest pointer need not be rounded up.
        """
        rounded = [-(-size // self.align) * self.align for size in sizes]
        top = self.most_alive(rounded)
        return 0 if top is None else top.bytes - max(r - s for r, s in zip(rounded, sizes, strict=True))

    def _saved(self, at: int, sizes: Sequence[int]) -> int:
        """Bytes that the output of the iOp at a position may save by taking an input's place."""
        pairs = [pair for pair in self.shared if self.ranges[pair[1]].born == at]
        return max((min(sizes[a], sizes[b]) for a, b in pairs), default=0)

    def place(self, sizes: Sequence[int] | None = None, enough: int = 0) -> Placement:
        """Addresses with the least peak that is found.

        Parameters
        ----------
        sizes : sequence of int, optional
            Bytes of every range in place of its own.
        enough : int
            A peak with which the search may stop.
        """
        sizes = self.sizes() if sizes is None else sizes
        enough = max(enough, self._least(sizes))
        best: tuple[int, list[int]] | None = None
        for order, lowest in self._orders(sizes):
            found = self._place(order, sizes, lowest)
            peak = max((at + size for at, size in zip(found, sizes, strict=True)), default=0)
            if best is None or peak < best[0]:
                best = (peak, found)
            if peak <= enough:
                break
        assert best is not None
        names = [x.name for x in self.ranges]
        return Placement(dict(zip(names, best[1], strict=True)), best[0])

    def _orders(self, sizes: Sequence[int]) -> Iterator[tuple[Sequence[int], bool]]:
        """Orders of placing, and whether each pointer goes to the lowest place that is free.

        Of few pointers every order is there: that of the addresses in a best placement among them, which
        the lowest places reach (shared places apart, each pointer ends up no higher than there).
        """
        indices = range(len(self.ranges))

        def length(i: int) -> int:
            return self.ranges[i].last - self.ranges[i].first + 1

        yield sorted(indices, key=lambda i: (-sizes[i], self.ranges[i].first)), False
        yield sorted(indices, key=lambda i: (self.ranges[i].first, -sizes[i])), False
        yield sorted(indices, key=lambda i: (-length(i), -sizes[i])), False
        yield sorted(indices, key=lambda i: (-length(i) * sizes[i], self.ranges[i].first)), False
        yield sorted(indices, key=lambda i: (-self.ranges[i].last, -sizes[i])), False
        if len(indices) <= EXHAUSTIVE:
            yield from ((order, True) for order in itertools.permutations(indices))

    def _place(self, order: Sequence[int], sizes: Sequence[int], lowest: bool) -> list[int]:
        """Addresses, one after the other: the lowest, or the best fit.

        The best keeps the peak low, then takes the place of a dying input, then fills a gap most tightly.
        """
        at: dict[int, int] = {}
        peak = 0
        for i in order:
            # what has no bytes is in nobody's way
            placed = {j for j in at if sizes[j]}
            taken = sorted((at[j], at[j] + sizes[j]) for j in placed & self.apart[i])
            partners = [(j, delta) for j, delta in self._partners(i) if j in placed]
            choices = []
            for address, taking, room in self._candidates(i, at, sizes, taken, partners):
                end = address + sizes[i]
                free = all(end <= low or high <= address for low, high in taken)
                for j, delta in partners if free else ():
                    apart = end <= at[j] or at[j] + sizes[j] <= address
                    free = free and (apart or address == at[j] + delta)
                if free:
                    fit = (0, False, 0) if lowest else (max(peak, end), not taking, room)
                    choices.append((*fit, address))
            at[i] = min(choices)[-1]
            peak = max(peak, at[i] + sizes[i])
        return [at[i] for i in range(len(sizes))]

    def _partners(self, i: int) -> Iterator[tuple[int, int]]:
        """(j, how much more the address of i is than that of j if they share) of every possible partner."""
        for (a, b), delta in self.shared.items():
            if a == i:
                yield b, -delta
            elif b == i:
                yield a, delta

    def _candidates(
        self,
        i: int,
        at: Mapping[int, int],
        sizes: Sequence[int],
        taken: Sequence[tuple[int, int]],
        partners: Sequence[tuple[int, int]],
    ) -> Iterator[tuple[int, bool, int]]:
        """(address, whether it takes a partner's place, bytes left over there)."""
        for j, delta in partners:
            if at[j] + delta >= 0 and (at[j] + delta) % self.align == 0:
                yield at[j] + delta, True, 0
        blocked = sorted([*taken, *((at[j], at[j] + sizes[j]) for j, _ in partners)])
        for start in (0, *(high for _, high in blocked)):
            address = -(-start // self.align) * self.align
            later = [low for low, _ in blocked if low >= address]
            room = min(later) - address - sizes[i] if later else 1 << 62
            if room >= 0:
                yield address, False, room


class _Barriers:
    """Where all units of a group wait for each other."""

    def __init__(self, facts: GraphFacts) -> None:
        self.spans = loop_spans(facts)
        units = int(facts.graph.num_units)
        self.at = [
            step.position
            for step in facts.steps
            if (step.spec.barrier and step.iop.attrs["scope"] in ("sram", "dram"))
            or (not step.spec.barrier and step.leaders == units)
        ]

    def separates(self, before: Live, after: Live) -> bool:
        """Whether no unit can touch ``after`` while another still touches ``before``, nor the reverse.

        Every loop runs at least once, so that a barrier between two positions is passed on every way
        from the one to the other; around a loop that encloses both, one must be passed on the way back.
        """
        begin, end = before.accesses[0].position, before.accesses[-1].position
        first, last = after.accesses[0].position, after.accesses[-1].position
        if not any(end < p < first for p in self.at):
            return False
        extents = {str(n.var): int(n.extent) for a in before.accesses for n in a.loops}
        for var, extent in extents.items():
            low, high = self.spans[var]
            if extent < 2 or not (low <= begin and last <= high):
                continue
            if not any(last < p <= high or low <= p < begin for p in self.at):
                return False
        return True
