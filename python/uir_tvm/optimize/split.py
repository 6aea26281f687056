# SPDX-License-Identifier: Apache-2.0
"""A graph with barriers of all units as the graphs between them, for targets that have no such barrier.

Launching one kernel after the other is what every device can do: all units of the first are done before
any of the second begins.  What they hand over lies in dram: registers and sram do not outlive a kernel, so
that what was loaded before a barrier and is still used after it is loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..errors import CodegenError
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, ISlice, map_iops, walk_body
from ..igraph.rewrite import map_slices
from ..igraph.text import print_iop, print_slice
from ..verify import replay
from ..verify.access import Access, GraphFacts
from ..verify.initialised import MAX_COST, covers, is_written


def phases(graph: IGraph) -> list[IGraph]:
    """The graphs between the barriers of all units, to be run one after the other.

    Parameters
    ----------
    graph : IGraph
        A verified graph.

    Returns
    -------
    list of IGraph
        The graph itself where it has no ``sync.dram``.  Otherwise one graph for each part of the body that
        does something, named ``NAME_1of2``, ...  Its parameters are those of the graph that it touches, in
        order, then the temporary dram that it shares with other parts: ``inout`` where it writes it, else
        ``in``.  A result that several parts write is ``inout`` in each of them.

    Raises
    ------
    CodegenError
        A ``sync.dram`` inside a loop; reg or sram that one part computes and a later one reads.
    """
    if not any(is_barrier(iop) for iop, _ in graph.walk()):
        return [graph]
    _refuse_inside_loops(graph)
    bodies = _bodies(graph)
    if len(bodies) < 2:
        return [graph.replace(body=map_iops(graph.body, lambda iop: None if is_barrier(iop) else iop))]
    programs = [GraphFacts(graph.replace(body=body)) for body in bodies]
    for part in range(len(programs)):
        programs[part] = _reloaded(programs, part)
    _refuse_live(graph, programs)
    return [_part(graph, programs, k) for k in range(len(bodies))]


def num_phases(graph: IGraph) -> int:
    """How many graphs `phases` makes of a graph that it does not refuse."""
    return max(1, len(_bodies(graph)))


def still_splits(graph: IGraph, check: Callable[[IGraph], None] | None) -> Callable[[IGraph], None] | None:
    """A check of what passes make: ``check``, and that what could be split at its barriers still can.

    A pass may keep a value in reg across a barrier, which is right but leaves no place where a kernel ends.
    """
    if num_phases(graph) < 2:
        return check

    def both(made: IGraph) -> None:
        if check is not None:
            check(made)
        phases(made)

    return both


def is_barrier(iop: IOp) -> bool:
    """Whether an iOp is a barrier of all units."""
    return bool(spec_of(iop).barrier and iop.attrs["scope"] == "dram")


def _refuse_inside_loops(graph: IGraph) -> None:
    for iop, loops in graph.walk():
        if is_barrier(iop) and loops:
            raise CodegenError(
                f"A barrier of all units stands inside the loop over {loops[-1].var}.",
                where=print_iop(iop),
                need="sync.dram outside of all loops, where a kernel can end and the next one begin",
                remedy="unroll the loop, or run its body as a kernel of its own as often as it says",
            )


def _bodies(graph: IGraph) -> list[list[Any]]:
    """What lies between the barriers, where it is more than other syncs."""
    parts: list[list[Any]] = [[]]
    for node in graph.body:
        if isinstance(node, IOp) and is_barrier(node):
            parts.append([])
        else:
            parts[-1].append(node)
    return [body for body in parts if any(not spec_of(iop).barrier for iop, _ in walk_body(body))]


# -- pointers -------------------------------------------------------------------------------------
def _part(graph: IGraph, programs: Sequence[GraphFacts], part: int) -> IGraph:
    pointers = _pointers(graph, programs, part)
    by_name = {str(p.name): p for p in pointers}

    def seen(piece: ISlice) -> ISlice:
        return piece.replace(pointer=by_name[str(piece.pointer.name)])

    body = map_iops(programs[part].graph.body, lambda iop: map_slices(iop, seen))
    return graph.replace(name=f"{graph.name}_{part + 1}of{len(programs)}", pointers=pointers, body=body)


def _touching(programs: Sequence[GraphFacts], pointer: IPointer, kind: str | None = None) -> list[int]:
    """The parts that touch a pointer (read or write it)."""
    return [
        k
        for k, facts in enumerate(programs)
        if any(kind in (None, a.kind) for a in facts.by_pointer[str(pointer.name)])
    ]


def _pointers(graph: IGraph, programs: Sequence[GraphFacts], part: int) -> list[IPointer]:
    params: list[IPointer] = []
    workspace: list[IPointer] = []
    private: list[IPointer] = []
    named = {str(s.pointer.name) for iop, _ in programs[part].graph.walk() for s in iop.slices()}
    for pointer in graph.pointers:
        if str(pointer.name) not in named:
            continue
        role = _role(programs, part, pointer)
        fields = (pointer.name, pointer.level, pointer.dtype, pointer.size, role, pointer.dims)
        made = IPointer(*fields)
        (params if pointer.is_param else workspace if role != "tmp" else private).append(made)
    return [*params, *workspace, *private]


def _role(programs: Sequence[GraphFacts], part: int, pointer: IPointer) -> str:
    if pointer.level != "dram" or (not pointer.is_param and len(_touching(programs, pointer)) < 2):
        return "tmp"
    writers = _touching(programs, pointer, "write")
    if part not in writers:
        return "in"
    return "out" if pointer.role == "out" and writers == [part] else "inout"


# -- what does not survive ------------------------------------------------------------------------
def _reloaded(programs: Sequence[GraphFacts], part: int) -> GraphFacts:
    """The part with loads of earlier ones repeated at its start, where what they load has not changed."""
    loads = []
    for pointer in programs[part].graph.pointers:
        if pointer.level != "reg" or not _is_live(programs, part, pointer):
            continue
        load = _load_before(programs, part, pointer)
        if load is not None:
            loads.append(load)
    graph = programs[part].graph
    return GraphFacts(graph.replace(body=[*loads, *graph.body])) if loads else programs[part]


def _load_before(programs: Sequence[GraphFacts], part: int, pointer: IPointer) -> IOp | None:
    """The move from dram outside of all loops that wrote a pointer last, if dram still has what it loaded."""
    name = str(pointer.name)
    before = [(k, a) for k in range(part) for a in programs[k].by_pointer[name] if a.kind == "write"]
    if not before:
        return None
    made_in, write = before[-1]
    iop = write.iop
    if write.loops or not spec_of(iop).copies or iop.sources[0].pointer.level != "dram":
        return None
    changed = (
        a.kind == "write" and (k > made_in or a.position > write.position)
        for k in range(made_in, part + 1)
        for a in programs[k].by_pointer[str(iop.sources[0].pointer.name)]
    )
    return None if any(changed) else iop


def _is_live(programs: Sequence[GraphFacts], part: int, pointer: IPointer) -> bool:
    """Whether a part reads what an earlier one wrote."""
    if not any(k < part for k in _touching(programs, pointer, "write")):
        return False
    return bool(_stale(programs[part], pointer))


def _refuse_live(graph: IGraph, programs: Sequence[GraphFacts]) -> None:
    """reg and sram of which a part reads what an earlier one wrote."""
    live: list[str] = []
    for pointer in graph.pointers:
        if pointer.level == "dram":
            continue
        for part in _touching(programs, pointer, "read"):
            if _is_live(programs, part, pointer):
                read = _stale(programs[part], pointer)[0]
                live.append(f"{print_slice(read.slice)} in {print_iop(read.iop)}")
    if live:
        _refuse(graph, live)


def _refuse(graph: IGraph, live: Sequence[str]) -> NoReturn:
    raise CodegenError(
        f"`{graph.name}` cannot be split at its sync.dram: what is in reg or sram there is read after it.",
        where="; ".join(live),
        need="everything that crosses the barrier in dram",
        remedy="move it to a temporary dram pointer before the barrier and back after it, or load it again",
    )


def _stale(facts: GraphFacts, pointer: IPointer) -> list[Access]:
    """Reads of a pointer that this part has not, or not surely, written before."""
    accesses = facts.by_pointer[str(pointer.name)]
    writes = [a for a in accesses if a.kind == "write" and a.certain]
    reads = [a for a in accesses if a.kind == "read" and not any(covers(w, a) for w in writes)]
    if not reads or not writes:
        return reads
    share = int(facts.graph.num_units) if pointer.level == "sram" else 1
    if not facts.launch.static:
        return [read for read in reads if not is_written(read, writes, share)]
    if replay.cost(accesses) > MAX_COST:
        return reads
    return [hole.read for hole in replay.first_unwritten(accesses, int(pointer.size), share)]
