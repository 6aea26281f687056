# SPDX-License-Identifier: Apache-2.0
"""The kernels of a model that leaves sizes open: one schedule of each serves all sizes.

A kernel is timed at representative sizes of the model, each with a weight.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import tvm

from ..errors import OpenSizeError, TuneError
from ..frontend.open_model import OpenModel
from ..frontend.relax_symbols import OpenKernel
from ..igraph.space import Size
from ..igraph.tir_sizes import MOST, sizes_of
from ..kernel_graph import CustomOp
from ..kernel_graph.nodes import SpecializedOp
from ..options import CompileOptions
from ..runtime.open_programs import symbolic_programs
from ..runtime.symbolic_programs import SymbolicProgram, SymbolicPrograms
from ..schedule.size_points import SizePoint, default_points, given_points
from ..target import registry
from .task import KernelLaunch


def open_calls(
    model: OpenModel, target: tvm.target.Target, given: Sequence[Any] | None, fuse: bool
) -> Iterator[KernelLaunch]:
    """The launches of a model that leaves sizes open; see `task.extract_tasks`."""
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
        yield from _calls(program, those, number)


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


def _calls(program: SymbolicProgram, points: Sequence[SizePoint], number: int) -> Iterable[KernelLaunch]:
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
