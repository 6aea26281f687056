# SPDX-License-Identifier: Apache-2.0
"""Which writes of a reg pointer each read may see, over the whole loop tree.

The classic analysis of reaching definitions.  A write ends those whose elements it surely overwrites: of the
same iteration where their regions follow from one formula, of any iteration where it covers the whole
pointer. A loop is walked twice, the second time with what its end hands to its beginning; such a value is of
an *earlier* iteration.  Registers belong to one unit, so no other unit takes part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..igraph.nodes import Loop
from ..igraph.once import once
from ..verify.access import Access, GraphFacts, Step
from ..verify.region import Axis
from .slices import covers, may_meet, place, whole_pointer


@attrs.frozen
class _ReachingWrite:
    """One write that may have made the value; ``earlier``: in an iteration before this one."""

    position: int
    earlier: bool


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
        self._seen: dict[tuple[int, str], set[_ReachingWrite]] = {}
        self._targets: dict[int, Access] = {}
        self._walk(facts.graph.body, {}, 0)

    @once
    def uses(self) -> dict[int, list[Use]]:
        """The reads that may see what the iOp at a position wrote to its target, in program order."""
        out: dict[int, list[Use]] = {}
        for step in self.facts.steps:
            for access in step.accesses:
                for reach in self._seen.get((access.position, access.operand), ()):
                    out.setdefault(reach.position, []).append(Use(access, self._sole(access, reach)))
        return out

    def _sole(self, access: Access, reach: _ReachingWrite) -> bool:
        loops = self.facts.steps[reach.position].loops
        inside = _variables(access.loops[: len(loops)]) == _variables(loops)
        return inside and not reach.earlier and len(self._seen[access.position, access.operand]) == 1

    # --- the walk --------------------------------------------------------------------------------

    def _walk(self, body: Sequence[Any], state: _State, at: int) -> tuple[_State, int]:
        """What may be seen after a body that starts at position ``at``."""
        for node in body:
            if not isinstance(node, Loop):
                state = self._step(self.facts.steps[at], state)
                at += 1
                continue
            out, _ = self._walk(node.body, state, at)
            # what the end of an iteration hands to the beginning of the next
            again = _joined(state, _earlier(out, at))
            state, at = self._walk(node.body, again, at)
        return state, at

    def _step(self, step: Step, state: _State) -> _State:
        state = dict(state)
        for access in step.accesses:
            if access.slice.pointer.level != "reg":
                continue
            name = str(access.slice.pointer.name)
            found = state.get(name, {})
            if access.kind == "read":
                seen = self._seen.setdefault((access.position, access.operand), set())
                seen |= set(self._visible(found, access))
                continue
            made = _ReachingWrite(access.position, False)
            kept = {r: None for r in found if r != made and not self._ends(access, r)}
            state[name] = {**kept, made: None}
        return state

    def _visible(self, found: dict[_ReachingWrite, None], read: Access) -> Iterator[_ReachingWrite]:
        """The writes that a read may see: the latest first, up to one that covers all that it reads."""
        for reach in reversed(found):
            if reach.earlier:
                yield reach
                continue
            meets, covered = self._reaches(self._target(reach.position), read)
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
        return self.facts.seen.find(key, of, find)

    def _target(self, position: int) -> Access:
        found = self._targets.get(position)
        if found is None:
            accesses = self.facts.steps[position].accesses
            found = next(a for a in accesses if a.operand == "target" and a.kind == "write")
            self._targets[position] = found
        return found

    def _ends(self, write: Access, reach: _ReachingWrite) -> bool:
        """Whether nothing of an earlier write is left after ``write``."""
        if not write.certain or write.region.every > 1:
            return False
        piece, find = write.slice, self.facts.seen.find
        if find(("whole pointer", piece.__chandle__()), piece, lambda: whole_pointer(piece)):
            return True
        if reach.earlier:
            return False
        other = self._target(reach.position).slice
        key = ("covers", piece.__chandle__(), other.__chandle__())
        return find(key, (piece, other), lambda: covers(piece, other))


_State = dict[str, dict[_ReachingWrite, None]]


def _variables(loops: Sequence[Loop]) -> list[str]:
    return [str(loop.var) for loop in loops]


def _earlier(state: _State, begin: int) -> _State:
    """What a body left, as its next iteration sees it: its own values are of an earlier iteration now."""
    return {
        name: {attrs.evolve(r, earlier=True) if r.position >= begin else r: None for r in found}
        for name, found in state.items()
    }


def _joined(a: _State, b: _State) -> _State:
    return {name: {**a.get(name, {}), **b.get(name, {})} for name in {**a, **b}}


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
