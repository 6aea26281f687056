# SPDX-License-Identifier: Apache-2.0
"""Which kernels a run of a model launches; where it leaves sizes open, also at which representative ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx

from .. import kernel_graph
from ..errors import DynamicShapeError, OpenSizeError, TuneError
from ..frontend.open_model import OpenModel
from ..frontend.relax_symbols import OpenKernel
from ..igraph.space import Size
from ..igraph.tir_sizes import MOST, sizes_of
from ..import_model import import_model
from ..kernel_graph import CustomOp, KernelGraph
from ..kernel_graph.nodes import SpecializedOp
from ..options import CompileOptions
from ..schedule.size_points import SizePoint, default_points, given_points
from ..target import registry
from .open_programs import symbolic_programs
from .symbolic_programs import SymbolicProgram, SymbolicPrograms


@attrs.frozen
class KernelLaunch:
    """A launch in a run of a model.

    Parameters
    ----------
    name : str
    func : PrimFunc or None
        None: the target's library computes it, or there is no one kernel of it (``left`` says why).
    points : tuple of SizePoint
        Where its sizes are open: representative ones, by the names of its variables.
    left : str
        Why nobody can tune it.
    program : int
        Of which program of the model; a kernel is launched as often as the first one with it says.
    """

    name: str
    func: tirx.PrimFunc | None = attrs.field(default=None, repr=False, eq=False)
    points: tuple[SizePoint, ...] = ()
    left: str = ""
    program: int = 0


def launches_of(
    model: Any, target: tvm.target.Target, sizes: Sequence[Any] | None, fuse: bool
) -> Iterator[KernelLaunch]:
    """The launches of a run of a model; its parameters are those of `uir_tvm.tune.extract_tasks`."""
    read = read_model(model)
    if not isinstance(read, KernelGraph | tvm.IRModule):
        yield from _of_open(read, target, sizes, fuse)
        return
    if sizes is not None:
        given_points(sizes, ())
    if isinstance(read, tvm.IRModule) and kernel_graph.calls_kernels(read):
        yield from _of_module(read)
    else:
        yield from _of_graph(
            read if isinstance(read, KernelGraph) else kernel_graph.build(read, target, fuse=fuse)
        )


def read_model(model: Any, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Any:
    """A model as a `KernelGraph` or a Relax module; as an `OpenModel`, where it leaves sizes open.

    Raises
    ------
    FrontendError
        It cannot be imported.
    """
    if isinstance(model, KernelGraph) or hasattr(model, "symbolic"):
        return model
    try:
        return import_model(model, shapes)
    except DynamicShapeError as error:
        if error.model is None:
            raise
        return error.model


def _of_graph(graph: KernelGraph) -> Iterable[KernelLaunch]:
    for node in graph.nodes:
        if isinstance(node, CustomOp):
            yield KernelLaunch(node.name, node.prim_func)
        else:
            yield KernelLaunch(node.kind)


def _of_module(mod: tvm.IRModule) -> Iterable[KernelLaunch]:
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, tvm.ir.Call) or not isinstance(call.op, tvm.ir.Op):
                continue
            if str(call.op.name) in ("relax.call_tir", "relax.call_tir_inplace"):
                yield KernelLaunch(call.args[0].name_hint, mod[call.args[0]])
            elif str(call.op.name) == "relax.call_dps_packed":
                yield KernelLaunch("library")


def _of_open(
    model: OpenModel, target: tvm.target.Target, given: Sequence[Any] | None, fuse: bool
) -> Iterator[KernelLaunch]:
    """The launches of a model that leaves sizes open; see `launches_of`."""
    points = () if given is None else given_points(given, model.signature.symbols)
    for point in points:
        model.signature.bind(model.signature.shapes(point.sizes))
    kernel = getattr(model, "kernel", None)
    if kernel is not None:
        yield _kernel_call(kernel, points)
        return
    options = CompileOptions(
        database=None, dump_dir=None, override_dir=None, fuse=fuse, device=registry.place_of(target).name
    )
    programs = symbolic_programs(target, options)
    for number, (program, those) in enumerate(_by_program(model, programs, points).items()):
        yield from _of_program(program, those, number)


def _kernel_call(kernel: OpenKernel, points: Sequence[SizePoint]) -> KernelLaunch:
    """The launch of a model that is one kernel."""
    known = {str(size.name): size for size in sizes_of(kernel.func).values()}
    names = {str(variable.name): symbol for symbol, variable in kernel.variables.items()}
    name = str((kernel.func.attrs or {}).get("global_symbol", "kernel"))
    by_variable = [_seen(point, lambda at: {v: at[names[v]] for v in known}) for point in points]
    return KernelLaunch(name, kernel.func, tuple(by_variable or default_points(known.values())))


def _by_program(
    model: OpenModel, programs: SymbolicPrograms, points: Sequence[SizePoint]
) -> dict[SymbolicProgram, list[SizePoint]]:
    """The programs that serve representative sizes; without any, the one that serves most sizes."""
    found: dict[SymbolicProgram, list[SizePoint]] = {}
    if not points:
        first = programs.first(model)
        if first is None:
            raise _by_shape(next((each.why_numbers for each in programs.programs), programs.why_not))
        space = first.program.space
        ends = [(name, *space.range_of(name)) for name in space.symbols]
        tried = default_points(Size(name, low, MOST if high is None else high) for name, low, high in ends)
        admitted = [point for point in tried if first.program.admits(**point.sizes)]
        return {first.program: admitted or [SizePoint(space.representatives)]}
    for point in points:
        made = programs.of(model, model.signature.shapes(point.sizes))
        if made is None or made.program.whole is None:
            why = programs.why_not if made is None else made.program.why_numbers
            raise _by_shape(why or f"the sizes {point} are compiled by themselves")
        found.setdefault(made.program, []).append(point)
    return found


def _by_shape(why: str) -> TuneError:
    return TuneError(
        "There are no kernels for all sizes of the model to tune.",
        where="sizes, --sizes",
        limit=why or "it is compiled for each shape",
        remedy="tune it at fixed sizes (shapes=..., --shape), or leave these sizes out",
    )


def _of_program(program: SymbolicProgram, points: Sequence[SizePoint], number: int) -> Iterable[KernelLaunch]:
    """The launches of a program."""
    assert program.whole is not None
    kernels = program.whole.kernels
    for node in program.whole.graph.nodes:
        if isinstance(node, SpecializedOp):
            why = f"it is compiled for the sizes of each call: {node.reason}"
            yield KernelLaunch(node.attrs.kernel.group.name, left=why, program=number)
            continue
        if not isinstance(node, CustomOp):
            yield KernelLaunch(node.kind, program=number)
            continue
        record = kernels.records.get(node.name)
        if record is None or record.refusal is not None:
            yield KernelLaunch(node.name, left="TVM's own lowering takes it", program=number)
            continue
        func = record.products["prim_func"].without_attr("target")
        sizes_of_kernel = functools.partial(kernels.sizes_at, node.name, func)
        try:
            those = [_seen(point, sizes_of_kernel) for point in points]
        except OpenSizeError as error:
            yield KernelLaunch(node.name, left=error.what, program=number)
            continue
        yield KernelLaunch(node.name, func, tuple(those) if those[0].sizes else (), program=number)


def _seen(point: SizePoint, sizes_of_kernel: Callable[[Mapping[str, int]], dict[str, int]]) -> SizePoint:
    """Representative sizes of a model, as a kernel sees them."""
    return attrs.evolve(point, sizes=sizes_of_kernel(point.sizes), label=str(point))
