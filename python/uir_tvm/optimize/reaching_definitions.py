# SPDX-License-Identifier: Apache-2.0
"""Which writes of a reg pointer each read may see, over the whole loop tree.

The classic analysis of reaching definitions.  A write ends those whose elements it surely overwrites: of the
same iteration where their regions follow from one formula, of any iteration where it covers the whole
pointer. A loop is walked twice, the second time with what its end hands to its beginning; such a value is of
an *earlier* iteration.  Registers belong to one unit, so no other unit takes part.

Values of one pointer have nothing to do with those of another: each is walked by itself, and not again where
the next graph has the same accesses of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ..igraph.nodes import Loop
from ..igraph.once import once
from ..verify.access import Access, GraphFacts
from ..verify.region import Axis
from ..verify.seen import Seen
from .slices import covers, may_meet, place, whole_pointer

#: Writes that may have made a value, the latest last, each by its number among the accesses of the pointer;
#: whether it was in an iteration before this one.
_State = dict[tuple[int, bool], None]


@attrs.frozen(eq=False)
class Use:
    """A read that may see a write.

    Attributes
    ----------
    access : Access
        The read.
    sole : bool
        Whether it sees nothing but that write, of the very same iteration of all loops around the write.
    """

    access: Access
    sole: bool


class Flow:
    """What is read of each write of reg memory."""

    def __init__(self, facts: GraphFacts) -> None:
        self.facts = facts

    @once
    def uses(self) -> dict[int, list[Use]]:
        """The reads that may see what the iOp at a position wrote to its target, in program order."""
        found: list[tuple[Access, int, bool]] = []
        for pointer in self.facts.graph.pointers:
            if pointer.level == "reg":
                accesses = self.facts.by_pointer[str(pointer.name)]
                for read, write, sole in _seen_of(self.facts, str(pointer.name)):
                    found.append((accesses[read], accesses[write].position, sole))
        found.sort(key=_place)
        out: dict[int, list[Use]] = {}
        for access, position, sole in found:
            out.setdefault(position, []).append(Use(access, sole))
        return out


def _place(use: tuple[Access, int, bool]) -> tuple[int, str]:
    """Where a use stands: the operands of an iOp in their order."""
    access = use[0]
    # what an iOp reads of its target comes after its sources
    return access.position, access.operand if access.operand != "target" else "~"


def _seen_of(facts: GraphFacts, name: str) -> list[tuple[int, int, bool]]:
    """(read, write, whether it is the write's own iteration and sees nothing else), of one pointer."""
    key, of = facts.same_of(name)
    return facts.seen.find(("flow", key), of, lambda: _PointerWalk(facts.by_pointer[name], facts.seen).uses())


class _PointerWalk:
    """What reads of one pointer may see, by the numbers of its accesses in program order."""

    def __init__(self, accesses: Sequence[Access], seen: Seen) -> None:
        self.accesses, self.find = accesses, seen.find
        self.seen: dict[int, set[tuple[int, bool]]] = {}
        self._walk(range(len(accesses)), 0, {})

    def uses(self) -> list[tuple[int, int, bool]]:
        """See `_seen_of`."""
        return [
            (read, write, self._sole(read, write, earlier))
            for read, writes in self.seen.items()
            for write, earlier in sorted(writes)
        ]

    def _sole(self, read: int, write: int, earlier: bool) -> bool:
        loops = self.accesses[write].loops
        inside = _variables(self.accesses[read].loops[: len(loops)]) == _variables(loops)
        return inside and not earlier and len(self.seen[read]) == 1

    # --- the walk --------------------------------------------------------------------------------

    def _walk(self, numbers: range, depth: int, state: _State) -> _State:
        """What may be seen after some accesses that are all in the same ``depth`` loops."""
        at = numbers.start
        while at < numbers.stop:
            loops = self.accesses[at].loops
            if len(loops) == depth:
                state = self._access(at, state)
                at += 1
                continue
            inside = range(at, self._end(at, numbers.stop, depth))
            out = self._walk(inside, depth + 1, state)
            if not self._begins(at, depth + 1):
                # what the end of an iteration hands to the beginning of the next
                again = {**state, **_earlier(out, at)}
                out = self._walk(inside, depth + 1, again) if again != state else out
            state, at = out, inside.stop
        return state

    def _end(self, at: int, stop: int, depth: int) -> int:
        """Up to where accesses are in the same loop of a depth as the one at ``at``."""
        loop, end = self.accesses[at].loops[depth], at + 1
        while end < stop:
            loops = self.accesses[end].loops
            if len(loops) <= depth or loops[depth] is not loop:
                break
            end += 1
        return end

    def _access(self, at: int, state: _State) -> _State:
        access = self.accesses[at]
        if access.kind == "read":
            self.seen.setdefault(at, set()).update(self._visible(state, access))
            return state
        made = (at, False)
        kept: _State = {r: None for r in state if r != made and not self._ends(access, r)}
        kept[made] = None
        return kept

    def _begins(self, at: int, depth: int) -> bool:
        """Whether a loop begins with a write, in no other loop, that ends all before it."""
        access = self.accesses[at]
        return access.kind == "write" and len(access.loops) == depth and self._overwrites(access)

    def _visible(self, state: _State, read: Access) -> Iterator[tuple[int, bool]]:
        """The writes that a read may see: the latest first, up to one that covers all that it reads."""
        for reach in reversed(state):
            number, earlier = reach
            if earlier:
                yield reach
                continue
            meets, covered = self._reaches(self.accesses[number], read)
            if meets:
                yield reach
            if covered:
                return

    def _reaches(self, write: Access, read: Access) -> tuple[bool, bool]:
        """Whether a read may see a write of the same iteration, and whether it then sees nothing else."""

        def find() -> tuple[bool, bool]:
            meets = may_meet(write.slice, read.slice)
            return meets, meets and _covers_read(write, read)

        of = (write.slice, read.slice, write.region, read.region)
        key = ("reaches", of[0].__chandle__(), of[1].__chandle__(), id(of[2]), id(of[3]), write.certain)
        return self.find(key, of, find)

    def _overwrites(self, write: Access) -> bool:
        """Whether a write ends all before it, of any iteration."""
        if not write.certain or write.region.every > 1:
            return False
        piece = write.slice
        return self.find(("whole pointer", piece.__chandle__()), piece, lambda: whole_pointer(piece))

    def _ends(self, write: Access, reach: tuple[int, bool]) -> bool:
        """Whether nothing of an earlier write is left after ``write``."""
        number, earlier = reach
        if self._overwrites(write):
            return True
        if earlier or not write.certain or write.region.every > 1:
            return False
        piece, other = write.slice, self.accesses[number].slice
        key = ("covers", piece.__chandle__(), other.__chandle__())
        return self.find(key, (piece, other), lambda: covers(piece, other))


def _variables(loops: Sequence[Loop]) -> list[str]:
    return [str(loop.var) for loop in loops]


def _earlier(state: _State, begin: int) -> _State:
    """What a body left, as its next iteration sees it: its own values are of an earlier iteration now."""
    return {(number, earlier or number >= begin): None for number, earlier in state}


def _covers_read(write: Access, read: Access) -> bool:
    """Whether a write of the same iteration surely wrote all that is read."""
    if not write.certain or write.region.every > 1:
        return False
    if place(write.slice) != place(read.slice):
        return covers(write.slice, read.slice)

    def bounds(axis: Axis) -> tuple[set[str], set[str]]:
        return {str(b) for b in axis.lower}, {str(b) for b in axis.upper}

    sides = ((write.region.rows, read.region.rows), (write.region.cols, read.region.cols))
    return all(w <= r for a, b in sides for w, r in zip(bounds(a), bounds(b), strict=True))
