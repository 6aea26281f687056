# SPDX-License-Identifier: Apache-2.0
"""iGraph to TIR: a parallel loop over pid around the nests of every unit, one for each phase of the graph."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from tvm import tirx
from tvm.ir import Expr, StringImm

from ...errors import SEPARATOR, CodegenError
from ...function_attributes import LLVM_LEVEL
from ...igraph.affine import Affine, affine, var
from ...igraph.iops import mnemonic, spec_of
from ...igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop, map_iops
from ...igraph.rounds import MOST_ROUNDS, limited
from ...igraph.size_names import text_of
from ...igraph.tir_sizes import launch_sizes
from ...optimize.split import phases
from ...optimize.webs import rename
from ...schedule.annotations import LITTLE_WORK_ATTR, VECTOR_ATTR, WORK_PARTS
from .actions import OPAQUE, action_of
from .address import INDEX, LoopScope, index
from .begin_contract import begun
from .buffers import Buffers, single_rows
from .code import KIND, Code
from .distant_rows import distant_rows, emit_distant
from .emit_contract import ContractEmitter
from .emit_dot import DotEmitter
from .emit_nest import NestEmitter
from .emit_value import KernelContext
from .first_lanes import masked_bytes
from .full_tiles import FullTiles, full_tiles
from .groups import RowNest, overwrites_itself, plan
from .llvm_text import LlvmText
from .long_stores import long_stores
from .never_above import marked
from .prefetch import Prefetches
from .processors import has_avx512
from .read_through import read_through
from .row_loops import LongPasses, is_near, is_short
from .runs import vector_bytes_of
from .short_columns import windows
from .stream import Streams, fence
from .values import OperandValues
from .wide_elements import wide_elements

#: As far as LLVM optimises a kernel without products: their loops are vectors already, and what it does more
#: changes no time (docs/targets/cpu.md).
LIGHT = 1


@attrs.define
class _Repeat:
    """A loop of the loop tree with its planned body; ``rounds``: how many do something, if sizes say so."""

    loop: Loop
    body: list[RowNest | _Repeat]
    rounds: Affine | None = None


@attrs.frozen(eq=False)
class _Part:
    """What lies between two barriers of all units, planned."""

    graph: IGraph
    planned: list[RowNest | _Repeat]
    nests: list[RowNest]
    values: OperandValues
    rounds: Mapping[str, Affine]

    @staticmethod
    def of(phase: IGraph, ended: Mapping[str, Affine] | None = None) -> _Part:
        """The plan of a phase; ``ended``: of one without bounds whose loops end after so many rounds."""
        prepared = _without_overlap(windows(read_through(marked(long_stores(rename(phase))))))
        graph, rounds = limited(prepared) if ended is None else (prepared, ended)
        planned = _planned(begun(graph.body), rounds)
        nests = list(_all_nests(planned))
        return _Part(graph, planned, nests, OperandValues(nests), rounds)

    @property
    def memories(self) -> list[IPointer]:
        """Pointers other than the graph's parameters that need memory: something is stored there."""
        actions = (action for nest in self.nests for action in nest.actions)
        stored = {action.write.pointer.name for action in actions if self.values.stored(action)}
        return [p for p in self.graph.pointers if p.name in stored]


def lower(graph: IGraph, prim_func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The iGraph as a TIR function for TVM's LLVM code generator.

    Parameters
    ----------
    graph : IGraph
        A verified graph with one unit per group.
    prim_func : PrimFunc
        The function that it was extracted from: its parameters and attributes are kept.  The data of
        parameters need only be aligned to their elements.

    Returns
    -------
    PrimFunc
        Without blocks: flat buffers, serial and parallel loops, vector loads and stores.  A ``sync.dram``
        ends one parallel loop, and the next one begins.

    Raises
    ------
    CodegenError
        A dtype, group form or cast that this target has not; a ``sync.dram`` where a kernel cannot end.
    """
    if graph.num_units != 1:
        raise CodegenError(
            f"The graph `{graph.name}` has {graph.num_units} units in a group.",
            need="num_units = 1 on uir-cpu",
            remedy="schedule it with map_to_units(..., num_units=1)",
        )
    graph = wide_elements(graph)
    parts = [_Part.of(phase) for phase in phases(graph)]
    parameters = [_unaligned(p) for p in prim_func.params]
    text, memory, code = LlvmText(), Buffers(), Code()
    buffers = [p for p in parameters if tirx.buffer.is_buffer_var(p)]
    if len(buffers) != len(graph.params):
        raise CodegenError(
            f"`{graph.name}` has {len(graph.params)} tensors, its function {len(buffers)}.",
            need="one dram parameter per buffer of the function",
        )
    scope = _sizes(graph, prim_func)
    registers = int(graph.hardware.figures.get("vector_registers", 16))
    masked = masked_bytes(graph.hardware)
    code.add(*_checks(graph, scope))
    for pointer, parameter in zip(graph.params, buffers, strict=True):
        memory.bind_parameter(code, pointer, parameter, scope)
    given = {str(p.name) for p in graph.params}
    workspace = {str(p.name): p for part in parts for p in part.memories if p.level == "dram"}
    for name, pointer in workspace.items():
        if name not in given:
            memory.allocate(code, pointer)
    wide, ahead = has_avx512(graph.hardware), Prefetches(graph.hardware, text)
    first_cache, long_passes = int(graph.hardware.figures.get("l1_bytes", 0)), LongPasses.of(graph.hardware)
    kernel = KernelContext(scope, memory, text, registers, masked, wide, ahead)
    kernel = attrs.evolve(kernel, first_cache=first_cache, long_passes=long_passes)
    for part in parts:
        _units(code, part, kernel, text)
    body = text.attach(code.statement())
    made = tirx.PrimFunc(parameters, body, prim_func.ret_type, prim_func.attrs, prim_func.span)
    products = any(nest.actions[0].kind == OPAQUE for part in parts for nest in part.nests)
    return made if products else made.with_attr(LLVM_LEVEL, LIGHT)


def _units(code: Code, part: _Part, kernel: KernelContext, text: LlvmText) -> None:
    """The parallel loop over pid, or its body alone where there is one unit."""
    graph = part.graph
    if graph.groups is not None:
        _open_units(code, part, kernel, text)
        return
    single = graph.num_parallel == 1
    pid, unit = tirx.Var("pid", INDEX), code if single else Code()
    streams = Streams(graph, text)
    _unit(unit, _allocated(unit, part, kernel), streams, index(0) if single else pid)
    if streams.used:
        fence(unit)
    if not single:
        code.add(tirx.For(pid, index(0), index(graph.num_parallel), KIND.PARALLEL, unit.statement()))


def _open_units(code: Code, part: _Part, kernel: KernelContext, text: LlvmText) -> None:
    """The same where sizes decide how many units there are: each thread goes through neighbours of them.

    One thread does little work alone.  Units whose tiles are full run code without bounds where bounds cost.
    """
    graph = part.graph
    full = None if _bears_bounds(part, kernel) else full_tiles(graph)
    # its loops end as those of the other: the bounds that said so are gone
    pairs = _Bounded(part, full, None if full is None else _Part.of(full.graph, part.rounds))
    threads = int(graph.hardware.num_groups)
    units = kernel.scope.expr(graph.parallel)
    little = int(graph.attrs.get(LITTLE_WORK_ATTR, 0))

    def shared(then: Code) -> None:
        thread, inside = tirx.Var("thread", INDEX), Code()
        share = inside.bind_index(tirx.floordiv(units + (threads - 1), index(threads)))
        first = inside.bind_index(thread * share)
        count = inside.bind_index(tirx.max(tirx.min(share, units - first), index(0)))
        ahead, far, near = Prefetches(graph.hardware, text, graph.num_parallel), Code(), Code()
        pairs.emit(far, attrs.evolve(kernel, prefetches=ahead), Streams(graph, text), first, count)
        large = ahead.large_enough(kernel.scope)
        if large is None:
            inside.add(*far.statements)
        else:
            pairs.emit(near, kernel, Streams(graph, text, allowed=False), first, count)
            inside.add(tirx.IfThenElse(large, far.statement(), near.statement()))
        then.add(tirx.For(thread, index(0), index(threads), KIND.PARALLEL, inside.statement()))

    def alone(then: Code) -> None:
        # what few units write stays in the caches
        pairs.emit(then, kernel, Streams(graph, text, allowed=False), index(0), units)

    if little > 0:
        lengths, longest = _lengths(graph, kernel.scope)
        work = math.prod(lengths, start=units * index(WORK_PARTS))
        code.branch(tirx.Or(units <= index(1), work <= index(little * longest)), alone, shared)
    else:
        shared(code)


def _bears_bounds(part: _Part, kernel: KernelContext) -> bool:
    """Whether the code of units with bounds is as fast as that of units without."""
    emitter = _emitter(part, kernel)
    return all(emitter.bears_bounds(nest) for nest in part.nests)


def _emitter(part: _Part, kernel: KernelContext) -> NestEmitter:
    """What tells how nests of a part would be emitted."""
    return NestEmitter(kernel, part.values, _vector_bytes(part.graph), Streams(part.graph, kernel.text))


def _lengths(graph: IGraph, scope: LoopScope) -> tuple[list[Expr], int]:
    """The lengths of what units work on, where sizes decide these, and the product of the greatest."""
    dealt = set() if graph.groups is None else set(graph.groups.variables())
    inner = [size for size in graph.sizes if str(size.name) not in dealt and size.high <= MOST_ROUNDS]
    return [scope.expr(var(str(size.name))) for size in inner], math.prod(int(size.high) for size in inner)


@attrs.frozen(eq=False)
class _Bounded:
    """What a unit does, and what one with full tiles does, where they differ."""

    part: _Part
    full: FullTiles | None
    full_part: _Part | None

    def emit(self, code: Code, kernel: KernelContext, streams: Streams, first: Expr, count: Expr) -> None:
        """A loop over ``count`` units from ``first`` on."""
        place, inside = tirx.Var("place", INDEX), Code()
        pid = inside.bind_index(first + place)
        once = None if self.full is not None else _once(self.part, kernel)
        if once is not None:
            tiles = code.bind_index(tirx.Select(once, count, index(1)))
            count = code.bind_index(tirx.Select(once, tirx.min(count, index(1)), count))
            kernel = attrs.evolve(kernel, tiles=tiles)
        bounded = _allocated(code, self.part, kernel)
        if self.full is None or self.full_part is None:
            _unit(inside, bounded, streams, pid)
        else:
            whole = _allocated(code, self.full_part, kernel)
            scope = kernel.scope.inside("pid", pid, self.part.graph.num_parallel)
            room = [scope.expr(value) >= index(0) for value in self.full.conditions]
            plain = Streams(self.part.graph, streams.text, allowed=False)
            inside.branch(
                functools.reduce(tirx.And, room),
                lambda then: _unit(then, whole, streams, pid),
                lambda then: _unit(then, bounded, plain, pid),
            )
        code.add(tirx.For(place, index(0), count, KIND.SERIAL, inside.statement()))
        if streams.used:
            # once for all units of the thread: a fence waits for every store before it
            fence(code)


def _once(part: _Part, kernel: KernelContext) -> Expr | None:
    """When units of a part are one tall tile (`tall_tiles`): their loops have one round; None: never."""
    body, rounds = part.planned, []
    while len(body) == 1 and isinstance(body[0], _Repeat):
        rounds.append(affine(body[0].loop.extent) if body[0].rounds is None else body[0].rounds)
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], RowNest):
        return None
    if any(not kernel.scope.sizes.issuperset(number.variables()) for number in rounds):
        return None
    if not _emitter(part, kernel).may_be_taller(body[0]):
        return None
    ends = [kernel.scope.expr(number) <= index(1) for number in rounds]
    return functools.reduce(tirx.And, ends) if ends else tirx.const(True, "bool")


@attrs.frozen(eq=False)
class _PreparedPart:
    """What a unit does, with the memory for it."""

    part: _Part
    kernel: KernelContext


def _allocated(code: Code, part: _Part, kernel: KernelContext) -> _PreparedPart:
    """Memory for what a unit keeps."""
    memory = kernel.memory.extended()
    pointers = {p.name: p for p in part.graph.pointers}

    def apart(nest: RowNest) -> bool:
        short = is_short(nest, kernel.long_passes)
        return short and is_near(nest, part.values, kernel.first_cache)

    rows = single_rows(part.nests, pointers, apart)
    for pointer in part.memories:
        if pointer.level != "dram":
            memory.allocate(code, pointer, rows.get(pointer.name))
    return _PreparedPart(part, attrs.evolve(kernel, memory=memory))


def _unit(code: Code, ready: _PreparedPart, streams: Streams, pid: Expr) -> None:
    """What one unit does."""
    graph, values = ready.part.graph, ready.part.values
    scope = ready.kernel.scope.inside("pid", pid, graph.num_parallel)
    # neighbours of units that sizes number run one after another
    kernel = attrs.evolve(ready.kernel, scope=scope, loop=None if graph.groups is None else "pid")
    _emit(code, ready.part.planned, kernel, values, graph, streams)


def _vector_bytes(graph: IGraph) -> int:
    return int(graph.attrs.get(VECTOR_ATTR, graph.hardware.vector_bytes))


def _sizes(graph: IGraph, prim_func: tirx.PrimFunc) -> LoopScope:
    """The graph's sizes as the variables of the function's shapes, and what is known of them."""
    known = {str(size.name): size for size in graph.sizes}
    return LoopScope(launch_sizes(prim_func, known), known)


def _emit(
    code: Code,
    planned: Sequence[RowNest | _Repeat],
    kernel: KernelContext,
    values: OperandValues,
    graph: IGraph,
    streams: Streams,
) -> None:
    def nest_emitter(nest: RowNest, kernel: KernelContext) -> NestEmitter:
        return NestEmitter(kernel, values, width(nest, kernel.loop), streams)

    def width(nest: RowNest, loop: str | None) -> int:
        return vector_bytes_of(nest, values, graph.hardware, _vector_bytes(graph), loop)

    for node in planned:
        if isinstance(node, _Repeat):
            name, extent = node.loop.var, node.loop.extent
            variable, inner = tirx.Var(name, INDEX), Code()
            alone = node.body[0] if len(node.body) == 1 and node.rounds is None else None
            nest = alone if isinstance(alone, RowNest) else None
            apart = 1 if nest is None else distant_rows(nest, values, graph.hardware, node.loop)
            starts = [variable + k * (extent // apart) for k in range(apart)]
            scopes = [kernel.scope.inside(name, start, extent) for start in starts]
            within = [attrs.evolve(kernel, scope=scope, loop=name) for scope in scopes]
            if nest is not None and apart > 1:
                emit_distant(inner, nest, [nest_emitter(nest, each) for each in within])
            else:
                _emit(inner, node.body, within[0], values, graph, streams)
            rounds = index(extent // apart)
            if node.rounds is not None:
                rounds = tirx.max(tirx.min(kernel.scope.expr(node.rounds), rounds), index(0))
            code.add(tirx.For(variable, index(0), rounds, KIND.SERIAL, inner.statement()))
        elif node.actions[0].kind == OPAQUE:
            action, bytes_of_vector = node.actions[0], width(node, kernel.loop)
            dot = DotEmitter(kernel, action, bytes_of_vector)
            (dot if dot.possible else ContractEmitter(kernel, action, bytes_of_vector)).emit(code)
        else:
            nest_emitter(node, kernel).emit(code, node)


def _checks(graph: IGraph, scope: LoopScope) -> Iterator[tirx.Stmt]:
    """Refuse sizes for which the graph is not made, before anything is read or written."""
    for size in graph.sizes:
        value, multiple = scope.variables[str(size.name)], int(size.multiple_of)
        admitted = tirx.And(value >= index(int(size.low)), value <= index(int(size.high)))
        text = f"a value from {size.low} to {size.high}"
        if multiple > 1:
            admitted = tirx.And(admitted, tirx.EQ(tirx.floormod(value, index(multiple)), index(0)))
            text += f" and a multiple of {multiple}"
        parts = (
            f"A size is not among those that the kernel `{graph.name}` is compiled for.",
            text_of(str(size.name)),
            text,
            "",
            "compile for a wider range of sizes",
        )
        yield tirx.AssertStmt(admitted, StringImm("SizeError"), [StringImm(SEPARATOR.join(parts))])


def _planned(body: Sequence[Any], rounds: Mapping[str, Affine]) -> list[RowNest | _Repeat]:
    """The loop tree with every straight run of iOps planned as nests."""
    out: list[RowNest | _Repeat] = []
    run: list[IOp] = []

    def close() -> None:
        actions = [action for action in map(action_of, run) if action is not None]
        out.extend(plan(actions))
        run.clear()

    for node in body:
        if isinstance(node, Loop):
            close()
            out.append(_Repeat(node, _planned(node.body, rounds), rounds.get(str(node.var))))
        else:
            run.append(node)
    close()
    return out


def _all_nests(planned: Sequence[RowNest | _Repeat]) -> Iterator[RowNest]:
    for node in planned:
        if isinstance(node, _Repeat):
            yield from _all_nests(node.body)
        else:
            yield node


def _without_overlap(graph: IGraph) -> IGraph:
    """iOps that write what they still have to read elsewhere write a copy first, which is then moved."""
    extra: list[IPointer] = []

    def through_copy(iop: IOp) -> IOp | list[IOp]:
        action = action_of(iop)
        if action is None or not overwrites_itself(action):
            return iop
        if spec_of(iop).keeps_target(iop):
            raise CodegenError(
                f"{mnemonic(iop)} writes the memory that it reads.",
                where=f"pointer {iop.target.pointer.name}",
                need="a target apart from the sources",
                remedy="move the source to another pointer first",
            )
        t = iop.target
        copy = IPointer(f"{t.pointer.name}_copy{len(extra)}", "reg", t.pointer.dtype, t.rows * t.cols, "tmp")
        extra.append(copy)
        piece = ISlice(copy, 0, t.shape, rows=t.valid[:2], cols=t.valid[2:])
        made = IOp(iop.op, iop.name, iop.dtype, [piece], iop.sources, iop.attrs)
        return [made, IOp("move", "", t.pointer.dtype, [t], [piece])]

    body = map_iops(graph.body, through_copy)
    return graph.replace(body=body, pointers=[*graph.pointers, *extra]) if extra else graph


def _unaligned(parameter: tirx.Var) -> tirx.Var:
    """A buffer parameter that promises no more alignment than its elements have.

    TVM promises LLVM 64 bytes without checking it, and tensors of other frameworks may start anywhere.
    """
    if not tirx.buffer.is_buffer_var(parameter):
        return parameter
    kind = parameter.ty
    size = max(1, int(tirx.const(0, kind.dtype).ty.dtype.bits) // 8) if str(kind.dtype) != "bool" else 1
    return tirx.decl_buffer(kind.shape, str(kind.dtype), name=parameter.name, data_alignment=size)


__all__ = ["lower"]
