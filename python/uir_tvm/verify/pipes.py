# SPDX-License-Identifier: Apache-2.0
"""Dependences within a unit between iOps that run on different pipes.

A unit of an accelerator starts its iOps in program order on several pipes (load, compute, store), each of
which runs what it got in order, but ahead of or behind the others.  Where two iOps on different pipes touch
one element and one of them writes, a printer must order them with what the device has: flags, events, queues.

An Ascend printer, for one, maps moves from dram to pipe MTE2, moves to dram to MTE3 and all else to V::

    def pipe_of(iop):
        if iop.op != "move":
            return "V"
        return "MTE2" if iop.sources[0].pointer.level == "dram" else "MTE3"

    for d in dependences(graph, pipe_of):
        ...

For ``for k { move r, a[k]; muls t, r; move c[k], t }`` it is given: raw on r (MTE2 to V), so a
SetFlag<MTE2_V> after the load and a WaitFlag<MTE2_V> before the muls; war on r carried by k with distance 1
(V to MTE2: the next load overwrites what this muls still reads), so a SetFlag<V_MTE2> after the muls for
which the load of the next iteration waits; likewise raw on t (V to MTE3) and war on t carried by k (MTE3 to
V).  With r in two halves that alternate the distance is 2: the load of iteration k waits for the muls of
iteration k - 2, which is what a double buffer is for.

Where the graph has addresses (`optimize.allocate`), pointers that share bytes are one memory: what follows
in a place waits for what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from ..igraph.dtypes import bytes_of
from ..igraph.nodes import IGraph, IOp, IPointer
from .access import Access, GraphFacts, Step
from .addresses import ADDRESSES
from .decide import Decision
from .happens_before import BARRIER_PHASE, Order, Pairing, Place
from .meeting import Meeting, Units, meet
from .region import Region

_KINDS = {("write", "read"): "raw", ("read", "write"): "war", ("write", "write"): "waw"}


@attrs.frozen(eq=False)
class Dependence:
    """The second iOp must wait for the first.

    Attributes
    ----------
    first, second : Step
        In the order in which the unit starts them.
    kind : str
        ``raw``, ``war`` or ``waw``.
    pointer : IPointer
        What the second touches; the first too, or a pointer that shares its bytes.
    carried : str, optional
        The loop by which they differ; None where they are of the same iteration of all common loops.
    distance : int, optional
        By how many iterations of that loop at least; None where it is unknown, which counts as 1.
    """

    first: Step
    second: Step
    kind: str
    pointer: IPointer
    carried: str | None = None
    distance: int | None = None


def dependences(graph: IGraph | GraphFacts, pipe_of: Callable[[IOp], str]) -> list[Dependence]:
    """Every dependence between pipes that no sync of the graph orders already, in program order.

    A sync of any scope orders all pipes of the unit.  Where the second iOp waits for the first of the same
    iteration, it waits for those of earlier iterations as well, since a pipe runs in order: these are not
    listed.

    Parameters
    ----------
    graph : IGraph
        One that keeps the rules of form, shape and bounds.
    pipe_of : Callable[[IOp], str]
        The pipe that an iOp runs on; dependences within one pipe are not listed.
    """
    facts = graph if isinstance(graph, GraphFacts) else GraphFacts(graph)
    found: dict[tuple[object, ...], Dependence] = {}
    for one in _all(facts, pipe_of):
        key = (one.first.position, one.second.position, str(one.pointer.name), one.kind, one.carried)
        other = found.get(key)
        if other is None or (one.distance or 1) < (other.distance or 1):
            found[key] = one
    direct = {key[:2] for key in found if key[-1] is None}
    kept = [d for key, d in found.items() if d.carried is None or key[:2] not in direct]
    return sorted(kept, key=lambda d: (d.first.position, d.second.position, d.carried or "", d.kind))


def _all(facts: GraphFacts, pipe_of: Callable[[IOp], str]) -> Iterator[Dependence]:
    order = Order(facts)
    syncs = [
        (*path, BARRIER_PHASE)
        for step, path in zip(facts.steps, order.paths, strict=True)
        if step.spec.barrier
    ]
    pipes = [pipe_of(step.iop) for step in facts.steps]
    answers: dict[tuple[object, ...], Decision[Meeting]] = {}
    for pointer, other in _together(facts.graph):
        for a in facts.by_pointer[str(pointer.name)]:
            for b in facts.by_pointer[str(other.name)]:
                if pipes[a.position] != pipes[b.position] and "write" in (a.kind, b.kind):
                    yield from _between(facts, order, syncs, a, b, answers)


def _together(graph: IGraph) -> Iterator[tuple[IPointer, IPointer]]:
    """Each pointer with itself, and with those with which it shares bytes, both ways."""
    for p in graph.pointers:
        for q in graph.pointers:
            if p.name == q.name or (p.level == q.level and _meet(_bytes(graph, p), _bytes(graph, q))):
                yield p, q


def _bytes(graph: IGraph, pointer: IPointer) -> tuple[int, int] | None:
    """Its first byte and the one after its last; None where it has no address."""
    start = graph.attrs.get(ADDRESSES, {}).get(str(pointer.name))
    if pointer.level == "dram" or start is None:
        return None
    return int(start), int(start) + int(pointer.size) * bytes_of(pointer.dtype)


def _meet(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a is not None and b is not None and a[0] < b[1] and b[0] < a[1]


def _seen_from(graph: IGraph, a: Access, b: Access) -> Region | None:
    """What ``b`` touches, in elements of the pointer of ``a``; None where their elements do not line up."""
    if a.slice.pointer.name == b.slice.pointer.name:
        return b.region
    mine, theirs = _bytes(graph, a.slice.pointer), _bytes(graph, b.slice.pointer)
    size = bytes_of(a.slice.pointer.dtype)
    if mine is None or theirs is None or size != bytes_of(b.slice.pointer.dtype):
        return None
    away = theirs[0] - mine[0]
    return attrs.evolve(b.region, offset=b.region.offset + away // size) if away % size == 0 else None


def _between(
    facts: GraphFacts,
    order: Order,
    syncs: list[Place],
    a: Access,
    b: Access,
    answers: dict[tuple[object, ...], Decision[Meeting]],
) -> Iterator[Dependence]:
    """Those in which ``a`` is the earlier one."""
    other = _seen_from(facts.graph, a, b)

    def ask(pairing: Pairing) -> Decision[Meeting]:
        if other is None:
            return Decision(None, None)
        key = (a.region.key, other.key, pairing)
        if key not in answers:
            answers[key] = meet(a.region, other, pairing, Units(same=True))
        return answers[key]

    if ask(Pairing()).excluded:
        return
    first, second = facts.steps[a.position], facts.steps[b.position]
    for pairing in order.pairings(a, b, syncs):
        answer = ask(pairing)
        if answer.excluded:
            continue
        distance: int | None = None
        while pairing.carried is not None and answer.found is not None:
            distance = _distance(pairing.carried, answer.found)
            if distance == 1:
                break
            answer = ask(attrs.evolve(pairing, within=distance - 1))  # whether there is a nearer one
        if not answer.decided:
            distance = None
        yield Dependence(first, second, _KINDS[a.kind, b.kind], b.slice.pointer, pairing.carried, distance)


def _distance(carried: str, answer: Meeting) -> int:
    """By how many iterations the two differ; what does not depend on the loop is in the next one too."""
    if carried in answer.first and carried in answer.second:
        return answer.second[carried] - answer.first[carried]
    return 1
