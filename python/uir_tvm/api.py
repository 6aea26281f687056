# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.compile``: a whole model in, an executable out."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import attrs
import tvm
from tvm import relax, tirx

from . import pipeline, threads
from .device.device_kernel import DeviceKernel
from .dump_files import write_dump
from .errors import (
    DynamicShapeError,
    ShapeError,
    UirError,
    UnsupportedOperatorError,
    ValueNeededError,
    last_line,
)
from .frontend.open_model import OpenModel
from .import_model import Door, Shapes, Values, import_model, model_name
from .kernel_graph.choices import Choices
from .one_at_a_time import one_at_a_time
from .options import DEFAULT_TARGET, CompileOptions
from .runtime.executable import Executable, KernelInfo, ModelInfo
from .runtime.specialized import SpecializedExecutable
from .runtime.symbolic_programs import SizedProgram, SymbolicPrograms
from .runtime.tensors import TensorSpec
from .shared_constants import SharedConstants
from .structure import STRUCTURE
from .symbolic_shapes import OpenSignature, Sizes

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
    name: str | None = None,
    database: str | os.PathLike[str] | None = None,
    options: CompileOptions | None = None,
    progress: Progress | None = None,
) -> Executable | SpecializedExecutable:
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
    Executable or SpecializedExecutable
        The latter for a model that leaves sizes or values open: it compiles at the call for what it is given,
        and has ``options.specialize`` already. Callable with NumPy arrays or torch tensors. One of a model of
        PyTorch takes the module's own arguments, by place or by name, and returns what the module returns,
        nested as there.

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
    label = name or model_name(model)
    door = Door(args, kwargs, converters, strict, dynamic_shapes, entry)
    try:
        made = _compile(model, target, shapes, values, label, options, progress, door, sizes)
    except (ValueNeededError, DynamicShapeError) as error:
        if error.model is None:
            raise
        needed = error
    else:
        if options.specialize:
            OpenSignature(()).known(options.specialize[0])
        return made
    opened: OpenModel = needed.model
    exe = SpecializedExecutable(
        opened,
        lambda module, constants: _compile(
            module, target, None, None, label, options, None, constants=constants
        ),
        opened.signature,
        opened.structure,
        label,
        target,
        options.device,
        needed,
        _programs(target, options),
    )
    for chosen in options.specialize:
        exe.make(chosen)
    return exe


def _programs(target: str | tvm.target.Target, options: CompileOptions) -> SymbolicPrograms:
    """How a model is read for all sizes at once."""
    from . import kernel_graph
    from .target import registry

    if options.database is not None:
        return SymbolicPrograms(None, "a database chooses by the numbers in shapes")
    chosen = registry.resolve(target, options.device).target
    return SymbolicPrograms(
        lambda module, space: kernel_graph.group(
            module, chosen, space, fuse=options.fuse, fast_math=options.fast_math, faults=options.faults
        )
    )


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
    from . import autoload, export, kernel_graph
    from .target import registry

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
        structure = model.program.structure
    else:
        mod = timed("import", lambda: import_model(model, shapes, values, door, sizes))
        structure = mod.attrs[STRUCTURE] if mod.attrs and STRUCTURE in mod.attrs else None
    inputs, outputs = _signature(mod)
    if graph is None and not kernel_graph.calls_kernels(mod):
        if options.dump_dir is not None:
            write_dump(options.dump_dir, label, ".relax.json", tvm.ir.save_json(mod))
            write_dump(options.dump_dir, label, ".relax.txt", mod.script())
        with kernel_graph.choosing(_choices(options, spec.target)), kernel_graph.sharing(constants):
            graph = timed(
                "kernel graph",
                lambda: kernel_graph.build(
                    mod, spec.target, fuse=options.fuse, fast_math=options.fast_math, faults=options.faults
                ),
            )
        mod = kernel_graph.to_relax(graph, weights=spec.spec.kind in export.PROJECTS)
    text = mod["main"].script()
    with kernel_graph.cuda_graph.asking(options.cuda_graph):
        lowered = timed("memory plan", lambda: kernel_graph.vm_passes(spec.target)(mod))
    total = sum(isinstance(func, tirx.PrimFunc) for func in mod.functions.values())

    def kernel_done(record: pipeline.KernelRecord) -> None:
        # by name: a kernel that TVM cannot build comes twice
        notify("kernels", len(records), total, record.name)

    with pipeline.recording(options, kernel_done) as records:
        library = timed("kernels", lambda: _build(lowered, spec.target, records, options))
    kernels = tuple(_info_of(r) for r in records.values())
    if spec.spec.kind in export.PROJECTS:
        kernels = tuple(_with_host_code(kernel, lowered) for kernel in kernels)
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
    )
    return Executable(library, info, graph)


def _choices(options: CompileOptions, target: tvm.target.Target) -> Choices:
    """What the database of a compilation says of kernel graphs."""
    if options.database is None:
        return Choices()
    from .tune.database import ScheduleDatabase
    from .tune.graph_search import choices_of
    from .tune.key import key_of

    return choices_of(ScheduleDatabase.existing(options.database), key_of(target))


def _build(
    mod: tvm.IRModule,
    target: tvm.target.Target,
    records: Mapping[str, pipeline.KernelRecord],
    options: CompileOptions,
) -> tvm.runtime.Module:
    """The machine code of a model; UnsupportedOperatorError where TVM fails on what is left to it.

    A kernel that TVM cannot build is left to TVM's own lowering, as where a stage has a fault.
    """
    try:
        return relax.build(mod, target, relax_pipeline=None)
    except UirError:
        raise
    except Exception as error:  # of the many that TVM raises
        left = {record.name for record in records.values() if record.refusal}
        found = {} if options.faults == "raise" else _unbuildable(mod, target, options)
        broken = {name: fault for name, fault in found.items() if name not in left}
        if not broken:
            if not left:
                raise
            raise _not_lowered(left, error) from error
    try:
        with pipeline.leaving(broken):
            return relax.build(mod, target, relax_pipeline=None)
    except UirError:
        raise
    except Exception as error:
        raise _not_lowered(left | set(broken), error) from error


def _not_lowered(left: Set[str], error: Exception) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"TVM's own lowering fails on kernels without an iGraph: {', '.join(sorted(left))}",
        where=last_line(error),
        need="kernels that TVM lowers for the host, where none of ours fits",
        remedy="compute these operators in another dtype, or express the model by others",
    )


def _unbuildable(
    mod: tvm.IRModule, target: tvm.target.Target, options: CompileOptions
) -> dict[str, Exception]:
    """The kernels that TVM cannot build by themselves, and what it raises."""
    found: dict[str, Exception] = {}
    for variable, func in mod.functions.items():
        if not isinstance(func, tirx.PrimFunc):
            continue
        try:
            with pipeline.recording(options):
                tvm.compile(tvm.IRModule({variable: func}), target)
        except MemoryError:
            raise
        except Exception as error:  # whatever TVM raises
            found[variable.name_hint] = error
    return found


def _signature(mod: tvm.IRModule) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    main = mod["main"]
    inputs = tuple(_spec(p.name, p.ty) for p in main.params)
    result = main.ret_ty
    fields = list(result.fields) if isinstance(result, relax.TupleType) else [result]
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


def _info_of(record: pipeline.KernelRecord) -> KernelInfo:
    texts = {s.name: s.dump(record.products[s.name]) for s in pipeline.STAGES if s.name in record.products}
    if "tir" in texts:
        texts["tir"] = record.products["tir"].script()
    seconds = dict(record.seconds)
    steps = [step.to_json() for step in record.steps]
    name, why = record.name, record.fallback
    attempts = [attempt.to_json() for attempt in record.attempts]
    phases, code = record.num_phases, _code_of(record)
    return KernelInfo(name, record.hero, record.recipe, why, texts, seconds, phases, steps, code, attempts)


def _with_host_code(kernel: KernelInfo, mod: tvm.IRModule) -> KernelInfo:
    """A kernel that the device does not take, with the C of its function for projects."""
    from .export.host_code import host_code

    if not kernel.fallback:
        return kernel
    return attrs.evolve(kernel, code={**kernel.code, "host": host_code(mod[kernel.name], kernel.name)})


def _code_of(record: pipeline.KernelRecord) -> dict[str, Any]:
    """How a printed kernel is launched, what its printer decided and what the compiler says of it."""
    source, cubin = record.products.get("source"), record.products.get("cubin")
    code: dict[str, Any] = {}
    if isinstance(source, DeviceKernel):
        code["launches"] = [launch.to_json() for launch in source.launches]
        code["params"] = [param.to_json() for param in source.params]
        code["workspace"] = [{"name": w.name, "bytes": w.nbytes} for w in source.workspace]
        code["workspace_bytes"] = sum(workspace.nbytes for workspace in source.workspace)
        if source.sizes:
            code["sizes"] = [repr(size) for size in source.sizes]
        code["hardware"] = source.hardware
        code["printer"] = dict(source.report)
    if cubin is not None:
        code["compiler"] = cubin.described()
    return code
