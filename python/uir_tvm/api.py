# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.compile``: a whole model in, an executable out."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import tvm
from tvm import relax, tirx

from . import autoload, pipeline, program_cache, threads
from .dump_files import write_dump
from .errors import (
    DynamicShapeError,
    FrontendError,
    ShapeError,
    ValueNeededError,
    is_own_fault,
)
from .frontend.named_state import Pairs
from .frontend.open_model import OpenModel
from .garbage import search_now, searched_at_the_end, without_frames
from .import_model import Door, Shapes, Values, exported, import_model, model_name, results_of
from .kernel_graph.choices import Choices
from .kernel_programs import KernelPrograms
from .model_digest import digest_of
from .model_library import build_library, info_of, specs_of, with_calls
from .model_state import held_last, state_of, updated_specs
from .one_at_a_time import one_at_a_time
from .options import DEFAULT_TARGET, CompileOptions
from .runtime.executable import Executable
from .runtime.growing_state import GrowingExecutable, growing
from .runtime.model_info import ModelInfo
from .runtime.open_programs import symbolic_programs
from .runtime.sized_executable import SizedExecutable
from .runtime.specialized import SpecializedExecutable
from .runtime.stored_programs import StoredProgram, StoredPrograms
from .runtime.symbolic_programs import SizedProgram, SymbolicProgram, SymbolicPrograms, needs_numbers
from .runtime.tensors import TensorSpec
from .shared_constants import LIVE, SharedConstants
from .sizes.symbolic_shapes import OpenSignature, Sizes
from .structure import STRUCTURE
from .target import registry

log = logging.getLogger(__name__)

#: Called with (stage, done, total, detail) while a model compiles; total 0 = not known yet.
Progress = Callable[[str, int, int, str], None]


def compile(
    model: Any,
    target: str | tvm.target.Target = DEFAULT_TARGET,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    converters: Mapping[str, Any] | None = None,
    strict: bool = False,
    dynamic_shapes: Any = None,
    shapes: Shapes = None,
    sizes: Sizes | None = None,
    values: Values = None,
    entry: str = "main",
    state: Pairs | None = None,
    name: str | None = None,
    database: str | os.PathLike[str] | None = None,
    options: CompileOptions | None = None,
    progress: Progress | None = None,
) -> Executable | SpecializedExecutable | GrowingExecutable:
    """Compile a model for a uir target.

    Parameters
    ----------
    model : tvm.IRModule, nn.Module, ExportedProgram, onnx.ModelProto, PrimFunc, IGraph, str or Path
        A Relax module with a function ``main``; a module of PyTorch with ``args``, which is exported in
        eval mode; an exported program; an ONNX model; one kernel; or a file:
        ``.onnx``, ``.pt2`` (torch.export.save), ``.relay`` and ``.json`` (Relay's text and JSON, with the
        parameters in a file of the same name that ends in .params or .npz), or a dump of any stage:
        ``.relax.json`` (the model), ``.tir.json`` (a kernel), ``.igraph`` and ``.opt.igraph`` (a kernel on
        flat tensors).
    target : str or Target
        A name, perhaps with a hardware model behind a colon; see ``uir targets``.
    args, kwargs : sequence, mapping, optional
        Example arguments of a module of PyTorch; their shapes and dtypes, and constants among them, become
        the executable's. Tensors may be nested in lists, tuples, dictionaries, dataclasses and what
        ``torch.utils._pytree`` knows.
    converters : mapping of str to callable, optional
        How operators of PyTorch are computed that the package does not know, or computes otherwise:
        ``"my::op"`` -> ``function(node, importer) -> relax.Var``, or `uir_tvm.InTorch`.
    strict : bool
        Whether an operator of PyTorch without a converter is refused. Otherwise PyTorch computes it at run
        time; the report lists such operators, with the reason, under ``opaque``.
    dynamic_shapes : optional
        Which axes of a module's arguments are of any size, as ``torch.export.export`` takes it.
    shapes : mapping of str to tuple of int, optional
        Shapes for inputs that leave sizes open, by name.
    sizes : mapping of str to int, optional
        Numbers for symbols: a ``Dim`` of PyTorch, a name in an ONNX model, a variable of Relax, or, for a
        size without a name, ``INPUT_AXIS``. A model whose sizes are all known then is a plain `Executable`;
        what is left open makes a `SpecializedExecutable`.
    values : mapping of str to numpy.ndarray, optional
        Inputs that are constants (ONNX): the executable does not take them. Inputs that decide shapes or
        attributes (axes, pads, repeats) and have no value here make a `SpecializedExecutable`.
    entry : str
        Of a Relax module, the function that is compiled; others are compiled as parts of it where it calls
        them. Tuples that it takes and returns are those of a call.
    state : mapping of str to str, int or None, or True, optional
        Inputs of an ONNX or Relax model that the executable keeps as state (docs/state.md), with the result,
        by name or number, that is the next value of each; None for a parameter that kernels of a Relax module
        update (``R.call_tir_inplace``). True: an ONNX decoder's ``past_key_values.*`` and ``present.*``.
    name : str, optional
        Name in reports; default: the file's or ``model``.
    database : str or Path, optional
        A folder of measured schedules (`uir_tvm.tune.ScheduleDatabase`), as `CompileOptions.database`.
    options : CompileOptions, optional
        Verification, passes, dumps and the device that it is to run on.
    progress : callable, optional
        Called as stages advance.

    Returns
    -------
    Executable, SpecializedExecutable or GrowingExecutable
        The second for a model that leaves sizes or values open: it compiles at the call for what it is given,
        and has ``options.specialize`` already; the third where ``state`` names inputs of such a model.
        Callable with NumPy arrays or torch tensors. One of a model of PyTorch takes the module's own
        arguments, by place or by name, and returns what the module returns, nested as there.

    Raises
    ------
    FrontendError
        The model cannot be imported (unknown operator, truncated file), or its framework is not installed.
    ShapeError
        A name in ``shapes`` or ``sizes`` that is none of the model's, or a size that it does not take.
    DatabaseError
        The database is damaged, or there is none.
    TargetError
        An unknown target, hardware model or device.
    """
    options = options or CompileOptions()
    if database is not None:
        options = attrs.evolve(options, database=pathlib.Path(database))
    label, start = name or model_name(model), time.perf_counter()
    resolved = registry.resolve(target, options.device)
    model, door = exported(model, Door(args, kwargs, converters, strict, dynamic_shapes, entry, state))
    device = registry.place_of(resolved.target).name

    def key_now() -> bytes | None:
        """Of the model as it is now."""
        digest = partial(digest_of, model, shapes, values, door, sizes)
        return program_cache.key_of(digest, label, resolved, device, options)

    key = key_now()
    kept = None if key is None else program_cache.find(key)
    if kept is not None:
        return _again(kept, start, options, progress)
    try:
        with searched_at_the_end():
            made = _compile(model, target, shapes, values, label, options, progress, door, sizes)
    except (ValueNeededError, DynamicShapeError) as error:
        if error.model is None:
            raise
        needed = without_frames(error)
    else:
        if options.specialize:
            OpenSignature(()).known(options.specialize[0])
        if key is not None:
            program_cache.keep(key, made)
        return made
    opened: OpenModel = needed.model
    keeper = program_cache.SizesKeeper(key, key_now, repr(opened.signature))
    programs = keeper.found or _programs_of(opened, label, target, options)

    def compiled(module: Any, constants: SharedConstants) -> Executable:
        if isinstance(module, SizedProgram) and isinstance(module.program, StoredProgram):
            return module.program.at(module.sizes)
        with keeper.watching(module, programs):
            return _compile(module, target, None, None, label, options, None, constants=constants)

    exe = SpecializedExecutable(
        opened,
        compiled,
        opened.signature,
        opened.structure,
        label,
        target,
        options.device,
        needed,
        programs,
    )
    for chosen in options.specialize:
        exe.make(chosen)
    return growing(exe, *_pairs(opened, state, model)) if state else exe


def _again(
    kept: program_cache.KeptProgram, start: float, options: CompileOptions, progress: Progress | None
) -> Executable:
    """One more executable of a program that was compiled before; ``start`` is when it was asked for."""
    if options.specialize:
        OpenSignature(()).known(options.specialize[0])
    autoload.register()
    if progress is not None:
        total = len(kept.info.kernels)
        for done, each in enumerate(kept.info.kernels, 1):
            progress("kernels", done, total, each.name)
    return kept.executable(time.perf_counter() - start)


def _pairs(opened: OpenModel, state: Pairs, model: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Inputs that grow, each with its result, of an ONNX model; and the names of its results.

    Raises
    ------
    FrontendError
        It is no ONNX model, or has not these names.
    """
    from .frontend.named_state import pairs_by_name

    results = results_of(model)
    if not results:
        raise FrontendError(
            "inputs are named as state of a model that leaves sizes open",
            need="fixed shapes, or an ONNX model",
            remedy="fix them: shapes={...}, sizes={...} (--shape, --size)",
        )
    return pairs_by_name(state, [each.name for each in opened.signature.inputs], results), results


def _programs_of(
    opened: OpenModel, label: str, target: str | tvm.target.Target, options: CompileOptions
) -> SymbolicPrograms | StoredPrograms:
    """What is compiled for all sizes of a model."""
    kernel = getattr(opened, "kernel", None)
    if kernel is None:
        return symbolic_programs(target, options)

    def alone(sizes: Sizes) -> Executable:
        return _compile(kernel.bound(sizes), target, None, None, label, options, None)

    return KernelPrograms(kernel, label, target, options, alone)


@one_at_a_time
def _compile_sized(
    given: SizedProgram, target: str | tvm.target.Target, label: str, options: CompileOptions, constants: Any
) -> Executable:
    """The executable of a program, seen for some sizes: compiled at the first, for all."""

    def alone() -> Executable:
        numbers = attrs.evolve(given, alone=True)
        return _compile(numbers, target, None, None, label, options, None, constants=constants)

    program, seconds = given.program, {}
    if program.executable is None:
        try:
            program.executable = _compile_whole(program, target, label, options)
        except MemoryError:
            raise
        except Exception as error:  # TVM raises many kinds of what it cannot lower without numbers
            if options.faults == "raise" and is_own_fault(error):
                raise
            if program.space.found:
                raise needs_numbers(program.space.found) from error
            program.leave(error)
            return alone()
        seconds = dict(program.executable.info.seconds)

    sizes = {name: given.sizes[name] for name in program.space.symbols}
    if not program.admits(**sizes):
        return alone()  # what was asked while all was compiled excludes these
    return SizedExecutable(program.executable, program.memory, sizes, alone, seconds)


def _compile_whole(
    program: SymbolicProgram, target: str | tvm.target.Target, label: str, options: CompileOptions
) -> Executable:
    """One executable for all sizes of a program; its description has open sizes."""
    from . import export, kernel_graph

    assert program.whole is not None
    autoload.register()
    spec = registry.resolve(target, options.device)
    place = registry.place_of(spec.target)
    place.say()
    threads.before_compiling()
    graph, start = program.whole.graph, time.perf_counter()
    projects = spec.spec.kind in export.PROJECTS
    mod = kernel_graph.to_relax(graph, weights=projects, space=program.space)
    text = mod["main"].script()
    lowered = kernel_graph.vm_passes(spec.target)(mod)
    planned = time.perf_counter()
    with pipeline.recording(options) as records, pipeline.knowing(program.whole.kernels.records):
        library = build_library(lowered, spec.target, records, options)
    kernels = tuple(with_calls(info_of(record), lowered, projects) for record in records.values())
    given = graph.inputs[: len(graph.inputs) - len(graph.state)]
    info = ModelInfo(
        name=label,
        target=spec.name,
        inputs=tuple(TensorSpec(t.name, t.shape, t.dtype) for t in given),
        outputs=tuple(
            TensorSpec(f"output{index}", shape, tensor.dtype)
            for index, (tensor, shape) in enumerate(graph.outputs)
        ),
        kernels=kernels,
        graph=graph.summary(),
        seconds={"memory plan": planned - start, "kernels": time.perf_counter() - planned},
        relax=text,
        device=place.name,
        structure=None if program.structure is None else json.loads(program.structure),
        state=specs_of(graph, program.initial),
        positions=graph.positions,
    )
    return Executable(library, info, graph, initial=program.initial)


@one_at_a_time
def _compile(
    model: Any,
    target: str | tvm.target.Target,
    shapes: Shapes,
    values: Values,
    label: str,
    options: CompileOptions,
    progress: Progress | None,
    door: Door | None = None,
    sizes: Sizes | None = None,
    constants: SharedConstants | None = None,
) -> Executable:
    """One executable; an error with an `OpenModel` where sizes are open, or a value decides a shape."""
    from . import export, kernel_graph

    if isinstance(model, SizedProgram) and model.program.whole is not None and not model.alone:
        return _compile_sized(model, target, label, options, constants)
    constants = constants or SharedConstants()
    autoload.register()
    notify = progress or (lambda *_: None)
    spec = registry.resolve(target, options.device)
    place = registry.place_of(spec.target)
    place.say()
    threads.before_compiling()
    seconds: dict[str, float] = {}

    def timed(stage: str, fn: Callable[[], Any]) -> Any:
        notify(stage, 0, 0, "")
        start = time.perf_counter()
        result = fn()
        seconds[stage] = time.perf_counter() - start
        return result

    graph = None
    if isinstance(model, SizedProgram):
        with kernel_graph.sharing(constants):
            graph = timed("kernel graph", lambda: kernel_graph.assemble(model.grouped(), spec.target))
        mod = kernel_graph.to_relax(graph, weights=spec.spec.kind in export.PROJECTS)
        structure, initial = model.program.structure, model.program.initial
        signature = _signature(mod)
        inputs, outputs = signature[0][: len(signature[0]) - len(initial)], signature[1]
    else:
        mod = timed("import", lambda: import_model(model, shapes, values, door, sizes))
        search_now()  # a front end's own form of the model holds its weights once more
        inputs, outputs = _signature(mod)
        initial = tuple(each.initial for each in state_of(mod))
        structure = mod.attrs[STRUCTURE] if mod.attrs and STRUCTURE in mod.attrs else None
    if graph is None and not kernel_graph.calls_kernels(mod):
        if options.dump_dir is not None:
            write_dump(options.dump_dir, label, ".relax.json", tvm.ir.save_json(mod))
            write_dump(options.dump_dir, label, ".relax.txt", mod.script())
        with kernel_graph.choosing(_choices(options, spec.target)), kernel_graph.sharing(constants):
            graph = timed(
                "kernel graph",
                lambda: kernel_graph.build(
                    mod,
                    spec.target,
                    fuse=options.fuse,
                    fast_math=options.fast_math,
                    faults=options.faults,
                    precision=options.precision,
                    activation=options.activation,
                    convolution=options.convolution,
                    fusion=options.fusion,
                    attention=options.attention,
                    normalized=True,
                ),
            )
        mod = kernel_graph.to_relax(graph, weights=spec.spec.kind in export.PROJECTS)
    updated = updated_specs(mod) if graph is None else ()
    if updated:
        mod = held_last(mod)
    text = mod["main"].script()
    if options.cuda_graph:
        mod = kernel_graph.cuda_graph.with_fixed_memory(mod, len(inputs))
    with kernel_graph.cuda_graph.asking(options.cuda_graph):
        lowered = timed("memory plan", lambda: kernel_graph.vm_passes(spec.target)(mod))
    total = sum(isinstance(func, tirx.PrimFunc) for func in mod.functions.values())

    def kernel_done(record: pipeline.KernelRecord) -> None:
        # by name: a kernel that TVM cannot build comes twice
        notify("kernels", len(records), total, record.name)

    with pipeline.recording(options, kernel_done) as records:
        library = timed("kernels", lambda: build_library(lowered, spec.target, records, options))
    if options.cuda_graph:
        left = {name: record.fallback for name, record in records.items() if record.refusal is not None}
        kernel_graph.cuda_graph.refuse_host(lowered, left)
    projects = spec.spec.kind in export.PROJECTS
    kernels = tuple(with_calls(info_of(record), lowered, projects) for record in records.values())
    info = ModelInfo(
        name=label,
        target=spec.name,
        inputs=inputs,
        outputs=outputs,
        kernels=kernels,
        graph=graph.summary() if graph is not None else {},
        seconds=seconds,
        relax=text,
        device=place.name,
        structure=None if structure is None else json.loads(structure),
        state=updated if graph is None else specs_of(graph, initial),
        positions=() if graph is None else graph.positions,
    )
    made = Executable(library, info, graph, initial=initial)
    LIVE.hold(made, constants)
    return made


def _choices(options: CompileOptions, target: tvm.target.Target) -> Choices:
    """What the database of a compilation says of kernel graphs."""
    if options.database is None:
        return Choices()
    from .tune.database import ScheduleDatabase
    from .tune.graph_search import choices_of
    from .tune.key import key_of

    return choices_of(ScheduleDatabase.existing(options.database), key_of(target))


def _signature(mod: tvm.IRModule) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    main = mod["main"]
    held, new = ({getattr(each, at) for each in state_of(mod)} for at in ("parameter", "output"))
    inputs = tuple(_spec(p.name, p.ty) for at, p in enumerate(main.params) if at not in held)
    result = main.ret_ty
    fields = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    fields = [field for at, field in enumerate(fields) if at not in new]
    return inputs, tuple(_spec(f"output{i}", field) for i, field in enumerate(fields))


def _spec(name: str, type_: Any) -> TensorSpec:
    shape = []
    for extent in type_.shape or []:
        if not isinstance(extent, tvm.tirx.IntImm):
            raise ShapeError(
                f"'{name}' has a dynamic dimension {extent}.",
                need="static shapes",
                remedy=f"give its shape: shapes={{'{name}': (...)}}",
            )
        shape.append(int(extent))
    return TensorSpec(name, tuple(shape), str(type_.dtype))
