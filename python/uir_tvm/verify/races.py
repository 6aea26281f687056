# SPDX-License-Identifier: Apache-2.0
"""Races: two units that touch one element of shared memory, one of them writing, with no barrier between.

Units u and v race in a pointer (sram: units of one group; dram: any two) when an instance of an access of
u and one of v touch the same element, at least one writes, and no barrier that both take part in lies
strictly between the two moments, in whichever order these come.  What no barrier separates is concurrent,
whatever the moments are: also across iterations of a loop, and also within one iOp.

A pointer is settled by the first that serves of: it is private, or nobody writes it; no element that is
written belongs to more than one unit (tilings, or marks); for every pair of accesses, every kind of pair
of units and every loop that may carry the pair (`happens_before`), the two do not meet in an element
(`meeting`).

The data decides where a scatter writes: scatters do not race with scatters, as in the rule of coverage.
A scatter and any other access, or a gather and any write, are taken to touch all they may touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

import attrs

from ..errors import VerifyError
from ..igraph.iops import mnemonic, spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, Loop
from ..igraph.sizes import whole_slice
from ..igraph.text import print_iop, print_slice
from . import coverage
from .access import Access, GraphFacts
from .decide import Decision, Rung
from .happens_before import Barrier, Order, Pairing, Place, Relation
from .meeting import Meeting, Units, meet
from .ownership import owned
from .period import in_first_group
from .region import PID, Region


@attrs.frozen(slots=False, eq=False)
class Race:
    """Two accesses of two units that nothing orders.

    Attributes
    ----------
    pointer : IPointer
        The memory at issue.
    first, second : Access
        In the order of the program; where a loop carries the race, ``first`` is of the earlier iteration.
    scope : str
        The least scope of a sync that orders them: ``sram`` or ``dram``.
    carried : str, optional
        The outermost loop in whose iterations the two differ; None where they are of the same one.
    witness : dict
        ``pid`` and the loops of the first, ``pid'`` and the loops of the second (primed), ``element``.
    rung : Rung or None
        What decided it; None where the question was too large: then no witness is known, nor that there is
        none.
    """

    pointer: IPointer
    first: Access
    second: Access
    scope: str
    carried: str | None
    witness: dict[str, int]
    rung: Rung | None

    @property
    def proved(self) -> bool:
        """Whether it is known that they race."""
        return self.rung is not None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the races of one pair of accesses in one order, whatever their witnesses."""
        accesses = ((a.position, a.operand, a.kind) for a in (self.first, self.second))
        return (str(self.pointer.name), *accesses, self.carried, self.scope)

    @property
    def sentence(self) -> str:
        """What happens, in one sentence."""
        name = self.pointer.name
        if not self.proved:
            return f"It is not proved that no two units race in '{name}'."
        u, v, element = self.witness[PID], self.witness[PID + "'"], self.witness["element"]
        first, second = _verb(self.first), _verb(self.second)
        when = f", in a later iteration of '{self.carried}'" if self.carried is not None else ""
        return (
            f"Units {u} and {v} race in element {element} of '{name}': {mnemonic(self.first.iop)} {first} it "
            f"and {mnemonic(self.second.iop)} {second} it{when}, with no sync.{self.scope} between."
        )

    @property
    def remedy(self) -> str:
        """Where a sync would help."""
        name, whole = self.pointer.name, print_slice(whole_slice(self.pointer))
        sync = f"sync.{self.scope} {whole}, {whole}"
        if self.first.position == self.second.position and self.carried is None:
            return f"give every unit a part of '{name}' of its own: no sync can stand inside an iOp"
        if self.carried is None:
            place = f"between {mnemonic(self.first.iop)} and {mnemonic(self.second.iop)}"
        else:
            place = f"in the body of the loop over '{self.carried}'"
        return f"put {sync} {place} (insert_sync does), or let them use different elements"

    def error(self) -> VerifyError:
        """The race as a fault."""
        return VerifyError(
            self.sentence,
            rule="race",
            where="; ".join(
                f"{print_iop(a.iop)}, slice {print_slice(a.slice)}" for a in (self.first, self.second)
            ),
            witness=self.witness,
            need=f"a barrier of scope {self.scope} or wider between the two, in every iteration",
            remedy=self.remedy
            if self.proved
            else "write the offsets as sums of pid and loop variables with "
            "constant coefficients, or put a sync between the iOps",
        )

    def __str__(self) -> str:
        return self.sentence


@attrs.frozen(eq=False)
class SyncNeed:
    """What one sync is for.

    Attributes
    ----------
    position : int
        Of the sync among the iOps of the graph.
    iop, loops
        The sync and the loops around it.
    race : Race, optional
        The race that opens without it, or at a lower scope where it is needed at this one; None: the sync
        can go.
    lower : str, optional
        The scope that would do, where it is lower than the one it has.
    """

    position: int
    iop: IOp
    loops: tuple[Loop, ...]
    race: Race | None
    lower: str | None = None


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every race, one for each two iOps; two writes of one element of a result are the coverage rule's."""
    seen: set[tuple[object, ...]] = set()
    for race in analysis(facts).find():
        key = (str(race.pointer.name), *sorted((race.first.position, race.second.position)))
        if key not in seen and not _told_by_coverage(facts, race):
            seen.add(key)
            yield race.error()


def find(graph: IGraph | GraphFacts, limit: int | None = None) -> list[Race]:
    """The races of a graph: one for every two accesses, loop that carries them, and scope.

    Parameters
    ----------
    graph : IGraph
        One that keeps the rules of the stages before, bounds above all.
    limit : int, optional
        How many to look for at most.
    """
    facts = graph if isinstance(graph, GraphFacts) else GraphFacts(graph)
    return list(islice(analysis(facts).find(), limit))


def sync_needs(graph: IGraph | GraphFacts) -> list[SyncNeed]:
    """Why each sync between units is there: the race that it prevents.

    A sync of scope reg orders no units and is not listed.  Each is asked about alone: of two that serve the
    same race either can go, not both.
    """
    facts = graph if isinstance(graph, GraphFacts) else GraphFacts(graph)
    races = analysis(facts)
    standing = races.order.barriers
    open_before = {c.key for c in races.conflicts()}
    at = {b.position: b for b in standing}
    group = int(facts.graph.num_units)

    def opened(barriers: Sequence[Barrier]) -> Race | None:
        return next((races.race(c) for c in races.conflicts(barriers) if c.key not in open_before), None)

    out = []
    for step in facts.steps:
        if not step.spec.barrier or step.iop.attrs["scope"] == "reg":
            continue
        mine, race, lower = at.get(step.position), None, None
        if mine is not None:
            rest = [b for b in standing if b is not mine]
            race = opened(rest)
            if race is not None and mine.size > group > 1:
                narrower = opened([*rest, attrs.evolve(mine, size=group)])
                race, lower = (race, "sram") if narrower is None else (narrower, None)
        out.append(SyncNeed(step.position, step.iop, step.loops, race, lower))
    return out


def analysis(facts: GraphFacts) -> Races:
    """The races of a program; answers once found are kept with it."""
    if "races" not in facts.memo:
        facts.memo["races"] = Races(facts)
    found: Races = facts.memo["races"]
    return found


_NEVER: Decision[Meeting] = Decision(None, Rung.INTERVALS)


@attrs.frozen(eq=False)
class Conflict:
    """Instances of two accesses that meet in an element: ``first`` is the earlier or of the same moment.

    Attributes
    ----------
    pairing, relation
        Which instances, and of which units.
    answer : Decision of Meeting
        Where they meet, if that is known.
    """

    pointer: IPointer
    first: Access
    second: Access
    pairing: Pairing
    relation: Relation
    answer: Decision[Meeting]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for conflicts of one pair of accesses in one order, one loop, and the same kind of units."""
        accesses = ((a.position, a.operand, a.kind) for a in (self.first, self.second))
        return (str(self.pointer.name), *accesses, self.pairing.carried, self.relation)

    @property
    def up_to_data(self) -> bool:
        """Whether the data decides on both sides where they write."""
        return (
            not (self.first.certain or self.second.certain) and self.first.kind == self.second.kind == "write"
        )


class Races:
    """Questions about races of one program, under the barriers it has or under others."""

    def __init__(self, facts: GraphFacts) -> None:
        self.facts = facts
        self._num_units = int(facts.graph.num_units)
        self._pairs: dict[str, list[tuple[Access, Access]]] = {}
        self._answers: dict[tuple[object, ...], Decision[Meeting]] = {}

    @cached_property
    def order(self) -> Order:
        """The places of the program's iOps."""
        return Order(self.facts)

    def find(self, barriers: Sequence[Barrier] | None = None) -> Iterator[Race]:
        """Every race under ``barriers`` (None: those of the graph)."""
        told: set[tuple[object, ...]] = set()
        for conflict in self.conflicts(barriers):
            race = self.race(conflict)
            if race.key not in told and not conflict.up_to_data:
                told.add(race.key)
                yield race

    def conflicts(self, barriers: Sequence[Barrier] | None = None) -> Iterator[Conflict]:
        """What no barrier of ``barriers`` orders, for each pair of accesses, loop that carries it, and kind
        of pairs of units."""
        for pointer in self.facts.graph.pointers:
            pairs = self.pairs(pointer)
            if not pairs:
                continue
            standing = self.order.barriers if barriers is None else list(barriers)
            for relation in self.order.relations(standing, within_group=pointer.level == "sram"):
                places = [b.place for b in standing if b.size in relation.joined]
                for first, second in pairs:
                    yield from self._of_pair(pointer, first, second, relation, places)

    def pairs(self, pointer: IPointer) -> list[tuple[Access, Access]]:
        """The accesses of a pointer, two by two, of which one writes and which units may share."""
        name = str(pointer.name)
        if name not in self._pairs:
            accesses = self.facts.by_pointer[name]
            self._pairs[name] = [] if owned(self.facts, pointer) else list(_conflicts(accesses))
        return self._pairs[name]

    def reopened(self, conflict: Conflict, places: Sequence[Place]) -> Decision[Meeting]:
        """Whether a conflict stands under other barriers, at ``places``."""
        for pairing in self.order.pairings(conflict.first, conflict.second, places):
            if pairing.carried == conflict.pairing.carried:
                return self._meeting(conflict.first, conflict.second, pairing, conflict.relation)
        return _NEVER

    def race(self, conflict: Conflict) -> Race:
        """A conflict with its witness in full."""
        a, b, pairing = conflict.first, conflict.second, conflict.pairing
        scope = "sram" if self._num_units in conflict.relation.joined else "dram"
        meeting = conflict.answer.found
        if meeting is None:
            return Race(conflict.pointer, a, b, scope, pairing.carried, {}, None)
        x = dict(pairing.first_at) | meeting.first
        y = dict(pairing.second_at) | meeting.second
        for v in pairing.equal:
            x[v] = y[v] = x[v] if v in x else y.get(v, 0)
        if (loop := pairing.carried) is not None:
            # where one side does not depend on the loop, the neighbouring iteration serves
            x[loop] = x[loop] if loop in x else y.get(loop, 1) - 1
            y[loop] = y.get(loop, x[loop] + 1)
        witness = {
            **conflict.answer.sizes,
            PID: x[PID],
            **{w: x.get(w, 0) for w, _ in self.order.loops[a.position]},
        }
        witness |= {f"{PID}'": y[PID], **{f"{w}'": y.get(w, 0) for w, _ in self.order.loops[b.position]}}
        witness["element"] = meeting.element
        return Race(conflict.pointer, a, b, scope, pairing.carried, witness, conflict.answer.rung)

    def _of_pair(
        self,
        pointer: IPointer,
        first: Access,
        second: Access,
        relation: Relation,
        places: Sequence[Place],
    ) -> Iterator[Conflict]:
        for a, b, pairing in self._orders(first, second, places):
            if not _own_parts(a, b, pairing, relation):
                answer = self._meeting(a, b, pairing, relation)
                if not answer.excluded:
                    yield Conflict(pointer, a, b, pairing, relation, answer)

    def _orders(
        self, first: Access, second: Access, places: Sequence[Place]
    ) -> Iterator[tuple[Access, Access, Pairing]]:
        for pairing in self.order.pairings(first, second, places):
            yield first, second, pairing
        if first is second:
            return
        same_moment = self.order.place(first) == self.order.place(second)
        for pairing in self.order.pairings(second, first, places):
            if pairing.carried is not None or not same_moment:
                yield second, first, pairing

    def _meeting(self, a: Access, b: Access, pairing: Pairing, relation: Relation) -> Decision[Meeting]:
        if self._ask(a.region, b.region, Pairing(), Units()).excluded:
            return _NEVER  # at no time at all
        used = {*a.region.used, *b.region.used}
        relevant = attrs.evolve(
            pairing,
            equal=tuple(v for v in pairing.equal if v in used),
            first_at=tuple(f for f in pairing.first_at if f[0] in used),
            second_at=tuple(f for f in pairing.second_at if f[0] in used),
        )
        joined, apart = relation.conditions()
        sides = None
        if self._num_units in relation.joined:
            sides = in_first_group([a.region, b.region], self._num_units)
        one, other = sides or (a.region, b.region)
        return self._ask(one, other, relevant, Units(tuple(joined), tuple(apart)))

    def _ask(self, a: Region, b: Region, pairing: Pairing, units: Units) -> Decision[Meeting]:
        """The answer, once for the same elements, instances and units."""
        key = (a.key, b.key, pairing, units)
        if key not in self._answers:
            self._answers[key] = meet(a, b, pairing, units)
        return self._answers[key]


def _conflicts(accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    for k, a in enumerate(accesses):
        for b in accesses[k:]:
            data_decides = a is b and not a.certain
            if "write" in (a.kind, b.kind) and not data_decides:
                yield a, b


def _own_parts(a: Access, b: Access, pairing: Pairing, kind: Relation) -> bool:
    """Whether they are the partial results of one reduce, of which each unit has a part of the buffer."""
    same = a is b and a.operand == "buffer" and pairing.carried is None
    return same and spec_of(a.iop).leads == "target" and int(a.iop.attrs["group_size"]) in kind.joined


def _told_by_coverage(facts: GraphFacts, race: Race) -> bool:
    """Whether two units write one element of a result: refused with or without a barrier."""
    both = all(a.kind == "write" and a.certain for a in (race.first, race.second))
    answer = facts.memo.get(("coverage", str(race.pointer.name)))
    return both and answer is not None and (not answer.decided or isinstance(answer.found, coverage.Clash))


def _verb(access: Access) -> str:
    return "writes" if access.kind == "write" else "reads"
