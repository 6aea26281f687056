# SPDX-License-Identifier: Apache-2.0
"""Multi-buffering: a loop that asks for it loads iterations ahead, into buffers of their own.

Before, with ``stages`` = 2::

    for k in 8 [pipeline=2] { move t, a[k]; unary.exp u, t; move b[k], u }

After::

    move t[0], a[0]                                                            # prologue
    for k in 7 [stages=2] {
      move t[(k + 1) % 2], a[k + 1]; unary.exp u[k % 2], t[k % 2]; move b[k], u[k % 2]
    }
    unary.exp u[1], t[1]; move b[7], u[1]                                      # epilogue

The loads of an iteration (`loads_ahead` says which moves they are) run ``stages - 1`` iterations ahead of the
iOps that use them, each iteration in flight has a place of its own in every buffer that is loaded or stored,
and everything else keeps its order.  So a target whose pipes run at the same time loads, computes and stores
different iterations at once.  A loop of fewer iterations has no more in flight.  Accumulators stay single.

A core that can only wait for all that a pipe was given (figure ``late_stores`` of its device: 1) would wait
for a store that it has just issued.  There its stores (`stores_behind`) run one iteration behind::

    move t[0], a[0]; move t[1], a[1]; unary.exp u[0], t[0]
    for k in 6 [stages=2] {
      move b[k], u[k % 2]; move t[(k + 2) % 2], a[k + 2]; unary.exp u[(k + 1) % 2], t[(k + 1) % 2]
    }
    move b[6], u[0]; unary.exp u[1], t[1]; move b[7], u[1]

so that one wait at the end of the loop's body is enough.

Where copies between sram and reg run beside all else (figure ``move_stages`` of the device: 1), operands that
are loaded by way of sram, and results that are stored so, have stages of their own for them, five in all
(`loads_ahead`, `stores_behind`, `pipeline_steps`)::

    for k in 5 [stages=2] {
      move b[k], v[k]; move s[k + 4], a[k + 4]                # sram to dram, dram to sram
      move v[k + 1], u[k + 1]; move t[k + 3], s[k + 3]        # reg to sram, sram to reg
      unary.exp u[k + 2], t[k + 2]
    }

each at its iteration's place in the buffers, with what leads in and out before and behind.  Units of a group
then meet once in an iteration.  Where only operands go by way of sram the stages are four: the store is one.
A loop whose buffers would not fit has fewer stages.

Exact: every iOp runs as often and on the same values as before; a load moves ahead only of iOps that write
nothing that it reads, a store behind only those that leave alone what it reads and writes.  Barriers of the
loop are placed anew, since loads and uses stand elsewhere: with two places or more, one in an iteration is
enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import attrs

from ..errors import PassError
from ..igraph import make
from ..igraph.affine import Affine, AffineLike, affine, var
from ..igraph.dealt import AHEAD, DEALT
from ..igraph.dtypes import bytes_of
from ..igraph.iops import spec_of
from ..igraph.nodes import JOINT, ROUNDS, IGraph, IOp, IPointer, ISlice, Loop, map_iops, walk_body
from ..igraph.rewrite import FreshNames, loop_variables, map_slices, pointers_of, substituted, without
from ..igraph.rounds import space_of
from ..igraph.sizes import whole_slice
from ..verify.live_ranges import STAGED
from ..verify.placement import alignment
from . import insert_sync
from .edit import fresh_name
from .figures import fits
from .flow import facts_of
from .loads_ahead import Stages, stages_of
from .pipeline_steps import LaggedPart, Run, open_runs, runs
from .stores_behind import Late, late_nodes
from .webs import rename

#: The figure of a device whose stores run behind.
LATE_STORES = "late_stores"
#: The figure of a device that copies between sram and reg beside all else.
MOVE_STAGES = "move_stages"
#: The attribute of a loop that asks for it: a number of stages.  `STAGED` takes its place when it is done.
PIPELINE = "pipeline"


def run(graph: IGraph) -> IGraph:
    """The graph with every loop that has the attribute ``pipeline`` in stages; itself where none has.

    Raises
    ------
    PassError
        A loop that cannot be pipelined: fewer than 2 stages, nothing to load ahead, a barrier of all units
        inside.
    """
    while (loop := _next(graph.body)) is not None:
        graph = _pipelined(graph, loop)
    return graph


def _next(body: Sequence[Any]) -> Loop | None:
    """An innermost loop that asks for it."""
    for node in body:
        if isinstance(node, Loop):
            inner = _next(node.body)
            if inner is not None:
                return inner
            if PIPELINE in node.attrs:
                return node
    return None


def _pipelined(graph: IGraph, loop: Loop) -> IGraph:
    stages = min(_checked(loop), int(loop.extent))  # no more are ever in flight
    if stages < 2:
        return _alone(graph, loop)
    late_stores, move_stages = (int(graph.hardware.figures.get(n, 0)) for n in (LATE_STORES, MOVE_STAGES))
    if ROUNDS in loop.attrs and JOINT not in loop.attrs:
        # every unit has a first round: what is loaded ahead for one more is that of the last
        found = stages_of(facts_of(graph), loop, 1)
        ahead = _staged(graph, loop, 2, found, Late()) if found.ahead else _alone(graph, loop)
        return ahead if fits(ahead) else _alone(graph, loop)
    if move_stages:
        # loads pass what is written a step less behind than the last of the stores
        found = stages_of(facts_of(graph), loop, 2 * stages - 1, on_chip=True)
        late = late_nodes(loop, found) if late_stores else Late()
        if found.ahead and (found.far or late.twice):
            made = _staged(graph, loop, stages, found, late)
            if fits(made):
                return made
    found = stages_of(facts_of(graph), loop, stages - 1)
    if DEALT in loop.attrs:
        # nobody asked for it: it is done where it can be
        late = late_nodes(loop, found) if late_stores else Late()
        ahead = _staged(graph, loop, stages, found, late) if found.ahead else _alone(graph, loop)
        return ahead if fits(ahead) else _alone(graph, loop)
    if not found.ahead:
        _refuse(
            f"Nothing in the loop over {loop.var} can be loaded ahead.",
            loop,
            need="a move from dram to a buffer that holds nothing from one iteration to the next",
            limit="; ".join(found.reasons) or "no move from dram to reg or sram stands in its body",
            remedy="stage an operand inside the loop (move_to_hierarchy), or leave the loop as it is",
        )
    return _staged(graph, loop, stages, found, late_nodes(loop, found) if late_stores else Late())


def _alone(graph: IGraph, loop: Loop) -> IGraph:
    """The graph with the loop as it is, one iteration after the other."""
    rest = {name: v for name, v in loop.attrs.items() if name not in (PIPELINE, JOINT)}
    alone = Loop(loop.var, loop.extent, loop.body, rest)
    return graph.replace(body=_with(graph.body, str(loop.var), [alone]))


def _staged(graph: IGraph, loop: Loop, stages: int, found: Stages, late: Late) -> IGraph:
    """The graph with the loop taken apart."""
    parts = _parts(loop, stages, found, late)
    hops = bool(found.far or late.twice)
    buffers = {
        name: _buffer(graph, loop, name, _places(name, parts) if hops else stages)
        for name in (*found.buffers, *late.buffers)
    }
    units = int(graph.num_units)
    waiting = next((b.new for b in buffers.values() if b.old.level == "sram"), None) if hops else None
    replaced = _Stager(graph, loop, stages, parts, buffers, waiting if units > 1 else None).nodes()
    body = _with(graph.body, str(loop.var), replaced)
    result = graph.replace(body=body, pointers=_pointers(graph, body, buffers))
    if graph.hardware.sram_bytes > 0:  # where reg is scarce, the copies of the body shall not share it
        result = rename(result)
    shared = any(str(b.old.level) == "sram" for b in buffers.values())
    if units > 1 and (shared or any(spec_of(iop).barrier for iop, _ in walk_body([loop]))):
        # between steps units had better meet, where they must, since what is of one step overlaps
        result = insert_sync.thinned(result) if waiting is not None else insert_sync.run(result)
    return result


def _parts(loop: Loop, stages: int, found: Stages, late: Late) -> list[LaggedPart]:
    """What of the body runs together, in the order of a step, and how many steps behind the first."""

    def some(indices: Iterable[int]) -> list[Any]:
        return [loop.body[k] for k in sorted(indices)]

    near = {*found.ahead, *found.onward} - {*found.far}
    taken = {*found.ahead, *found.onward, *late.once, *late.twice}
    rest = without([n for k, n in enumerate(loop.body) if k not in taken], lambda iop: spec_of(iop).barrier)
    brought = stages - 1 if found.far else 0
    computed = brought + stages - 1
    stored = computed + 1 if rest else computed
    return [
        LaggedPart(stored + 1, some(late.twice)),
        LaggedPart(0, some(found.far)),
        LaggedPart(stored, some(late.once)),
        LaggedPart(brought, some(near)),
        LaggedPart(computed, rest),
    ]


def _places(name: str, parts: Sequence[LaggedPart]) -> int:
    """How many iterations of a buffer are in use in one step: from the first part that does to the last."""
    lags = [
        part.lag
        for part in parts
        if any(str(s.pointer.name) == name for iop, _ in walk_body(part.nodes) for s in iop.slices())
    ]
    return max(2, max(lags) - min(lags) + 1)


def _checked(loop: Loop) -> int:
    stages = loop.attrs[PIPELINE]
    if type(stages) is not int or stages < 2:
        _refuse(
            f"The loop over {loop.var} asks for {stages} stages.",
            loop,
            need="at least 2: one that is loaded while another is used",
            remedy="drop the attribute pipeline, or ask for 2",
        )
    for iop, _ in walk_body(loop.body):
        if spec_of(iop).barrier and iop.attrs["scope"] == "dram":
            _refuse(
                f"A barrier of all units stands inside the loop over {loop.var}.",
                loop,
                need="iterations of which the loads depend on no other unit",
                remedy="pipeline a loop inside of it",
            )
    return stages


def _refuse(what: str, loop: Loop, need: str, remedy: str, limit: str = "") -> NoReturn:
    raise PassError(
        what,
        name="multibuffer",
        where=f"for {loop.var} in {loop.extent}",
        need=need,
        limit=limit,
        remedy=remedy,
    )


@attrs.frozen(eq=False)
class _Buffer:
    """A pointer, the one that takes its place in the loop, its places, and elements from one to the next."""

    old: IPointer
    new: IPointer
    places: int
    step: int


def _buffer(graph: IGraph, loop: Loop, name: str, places: int) -> _Buffer:
    old = graph.pointer(name)
    width = bytes_of(old.dtype)
    # every place keeps the alignment that the moves state and that the pointer itself has
    unit = math.lcm(width, alignment(graph.hardware, old.level), *_stated(loop, name))
    step = -(-int(old.size) * width // unit) * unit // width
    inside = sum(1 for iop, _ in walk_body(loop.body) for s in iop.slices() if str(s.pointer.name) == name)
    everywhere = sum(1 for iop, _ in graph.walk() for s in iop.slices() if str(s.pointer.name) == name)
    kept = name if inside == everywhere else fresh_name(graph, f"{name}_{loop.var}")
    size = step * (places - 1) + int(old.size)
    return _Buffer(old, IPointer(kept, old.level, old.dtype, size, "tmp"), places, step)


def _stated(loop: Loop, name: str) -> list[int]:
    return [
        int(iop.attrs["align"])
        for iop, _ in walk_body(loop.body)
        if "align" in iop.attrs and any(str(s.pointer.name) == name for s in iop.slices())
    ]


class _Stager:
    """The steps of one loop: those that lead in, the steady loop, those that lead out."""

    def __init__(
        self,
        graph: IGraph,
        loop: Loop,
        stages: int,
        parts: Sequence[LaggedPart],
        buffers: Mapping[str, _Buffer],
        meeting: IPointer | None,
    ) -> None:
        self.loop, self.stages, self.parts, self.buffers = loop, stages, parts, buffers
        self.names = FreshNames(graph)
        self.space = space_of(graph)
        #: Whether it may say more rounds than it has: what is loaded ahead has an end of its own then.
        told = loop.attrs.get(ROUNDS)
        self.passes_end = told is not None and self.space.range(told)[1] > int(loop.extent)
        self.meeting: list[IOp] = []
        if meeting is not None:
            whole = whole_slice(meeting)
            self.meeting = [make.sync(whole, whole, "sram")]

    def nodes(self) -> list[Any]:
        """What takes the place of the loop."""
        out: list[Any] = []
        steps = open_runs if {DEALT, JOINT} & set(self.loop.attrs) else runs
        for run in steps(self.parts, int(self.loop.extent)):
            if run.steady:
                attributes = {name: v for name, v in self.loop.attrs.items() if name not in (PIPELINE, JOINT)}
                if ROUNDS in attributes:
                    attributes[ROUNDS] = attributes[ROUNDS] - (int(self.loop.extent) - run.count)
                body = self.body(run, var(str(self.loop.var)))
                out.append(Loop(self.loop.var, run.count, body, attributes | {STAGED: self.stages}))
            elif run.count == 1:
                for part, first in run.parts:
                    names = self.names.of(loop_variables(part.nodes))
                    nodes = self.at(part.nodes, self.iteration(first), names)
                    out += self.guarded(run, part, first, nodes)
                out += self.meeting
            else:
                name = self.names.like(str(self.loop.var))
                out.append(Loop(name, run.count, self.body(run, var(name), renamed=True)))
        return out

    def iteration(self, number: int) -> Affine:
        """An iteration of what leads in or out: the first ones, or those before the end."""
        extent = int(self.loop.extent)
        rounds = None if JOINT in self.loop.attrs else self.loop.attrs.get(ROUNDS)
        return affine(number) if rounds is None or number == 0 else rounds - (extent - number)

    def body(self, run: Run, counter: Affine, renamed: bool = False) -> list[Any]:
        """The body of a loop over the steps of a run; its loops get names of their own where ``renamed``."""
        out: list[Any] = []
        for part, first in run.parts:
            names = self.names.of(loop_variables(part.nodes)) if renamed else None
            nodes = self.at(part.nodes, counter + first, names)
            if run.steady and first and self.passes_end:
                nodes = self.within(nodes, counter + first)
            out += self.guarded(run, part, first, nodes) if run.steady else nodes
        return out + self.meeting

    def within(self, nodes: Sequence[Any], iteration: Affine) -> list[Any]:
        """Loads without a source where the loop has no such iteration."""
        left = int(self.loop.extent) - iteration

        def piece(s: ISlice) -> ISlice:
            if s.pointer.level != "dram" or self.ends_with(s):
                return s
            if s.col_end is None:
                return s.replace(cols=(s.col_begin, left * int(s.cols)))
            if s.row_end is None:
                return s.replace(rows=(s.row_begin, left * int(s.rows)))
            return _refuse(
                f"What the loop over {self.loop.var} loads ahead has two bounds, none at the loop's end.",
                self.loop,
                need="a load that ends where the loop's iterations do, or has a side without a bound",
                remedy="pass no `end_joint_loops`, or leave the loop without stages",
            )

        return map_iops(nodes, lambda iop: map_slices(iop, piece))

    def ends_with(self, piece: ISlice) -> bool:
        """Whether a slice of an iteration ahead is empty where the loop has no such iteration."""
        last = {str(self.loop.var): int(self.loop.extent) - 1}
        ends = [end.substitute(last) for end in (piece.row_end, piece.col_end) if end is not None]
        return any(self.space.range(end)[1] <= 0 for end in ends)

    def guarded(self, run: Run, part: LaggedPart, first: int, nodes: list[Any]) -> list[Any]:
        """The nodes, left out where the tile of a later round that they are for may not be there.

        Nothing may count on what is ordered inside, so that it is one copy after the other, or stands last.
        """
        last = part is run.parts[-1][0]
        if not first or DEALT not in self.loop.attrs or not (last or _only_copies(nodes)):
            return nodes
        return [Loop(self.names.free("only"), 1, nodes, {AHEAD: first})]

    def at(
        self, nodes: Sequence[Any], iteration: Affine, names: Mapping[str, str] | None = None
    ) -> list[Any]:
        """The nodes as of one iteration, each buffer at that iteration's place."""
        env: dict[str, AffineLike] = {old: var(new) for old, new in (names or {}).items()}
        env[str(self.loop.var)] = iteration

        def piece(s: ISlice) -> ISlice:
            buffer = self.buffers.get(str(s.pointer.name))
            if buffer is None:
                return s
            slot = iteration % buffer.places
            return s.replace(pointer=buffer.new, offset=s.offset + slot * buffer.step)

        moved = [substituted(node, env, names) for node in nodes]
        return map_iops(moved, lambda iop: map_slices(iop, piece))


def _only_copies(nodes: Sequence[Any]) -> bool:
    """Whether nodes do nothing but copy from dram."""
    return all(spec_of(iop).copies and iop.sources[0].pointer.level == "dram" for iop, _ in walk_body(nodes))


def _with(body: Sequence[Any], name: str, nodes: Sequence[Any]) -> list[Any]:
    """The loop tree with the loop of that name replaced."""
    out: list[Any] = []
    for node in body:
        if not isinstance(node, Loop):
            out.append(node)
        elif str(node.var) == name:
            out.extend(nodes)
        else:
            out.append(Loop(node.var, node.extent, _with(node.body, name, nodes), node.attrs))
    return out


def _pointers(graph: IGraph, body: Sequence[Any], buffers: Mapping[str, _Buffer]) -> list[IPointer]:
    """The graph's pointers with the buffers, each in the place of the pointer that it stands for."""
    used = pointers_of(body)
    out: list[IPointer] = []
    for pointer in graph.pointers:
        buffer = buffers.get(str(pointer.name))
        if buffer is None or (str(pointer.name) != str(buffer.new.name) and str(pointer.name) in used):
            out.append(pointer)
        if buffer is not None:
            out.append(buffer.new)
    return out
