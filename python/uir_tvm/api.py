# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.compile``: a whole model in, an executable out."""

from __future__ import annotations

import logging
import os
import pathlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import tvm
from tvm import relax, tirx

from . import pipeline, threads
from .dump_files import write_dump
from .errors import FrontendError, ModelFormatError, ShapeError, UirError, UnsupportedOperatorError
from .igraph import IGraph
from .one_at_a_time import one_at_a_time
from .options import CompileOptions
from .runtime.executable import Executable, KernelInfo, ModelInfo
from .runtime.tensors import TensorSpec
from .target.device_kernel import DeviceKernel

log = logging.getLogger(__name__)

#: Called with (stage, done, total, detail) while a model compiles; total 0 = not known yet.
Progress = Callable[[str, int, int, str], None]
#: Shapes for inputs with dynamic dimensions, by name.
Shapes = Mapping[str, tuple[int, ...]] | None


@one_at_a_time
def compile(
    model: Any,
    target: str | tvm.target.Target = "uir-cpu",
    *,
    shapes: Shapes = None,
    name: str | None = None,
    database: str | os.PathLike[str] | None = None,
    options: CompileOptions | None = None,
    progress: Progress | None = None,
) -> Executable:
    """Compile a model for a uir target.

    Parameters
    ----------
    model : tvm.IRModule, torch.export.ExportedProgram, onnx.ModelProto, PrimFunc, IGraph, str or Path
        A Relax module with a function ``main``; an exported program; an ONNX model; one kernel; or a file:
        ``.onnx``, ``.pt2`` (torch.export.save), or a dump of any stage: ``.relax.json`` (the model),
        ``.tir.json`` (a kernel), ``.igraph`` and ``.opt.igraph`` (a kernel on flat tensors).
    target : str or Target
        ``uir-cpu`` or ``uir-cuda``, with a hardware model: ``uir-cuda:a100``; see ``uir targets``.
    shapes : mapping of str to tuple of int, optional
        Shapes for inputs with dynamic dimensions (ONNX).
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
    Executable
        Callable with NumPy arrays or torch tensors.

    Raises
    ------
    FrontendError
        The model cannot be imported (unknown operator, truncated file, dynamic dimension), or its framework
        is not installed.
    DatabaseError
        The database is damaged, or there is none.
    TargetError
        An unknown target, hardware model or device.
    """
    from . import autoload, export, kernel_graph
    from .target import registry

    autoload.register()
    notify = progress or (lambda *_: None)
    options = options or CompileOptions()
    if database is not None:
        options = attrs.evolve(options, database=database)
    spec = registry.resolve(target, options.device)
    place = registry.place_of(spec.target)
    place.say()
    threads.before_compiling()
    seconds: dict[str, float] = {}
    label = name or model_name(model)

    def timed(stage: str, fn: Callable[[], Any]) -> Any:
        notify(stage, 0, 0, "")
        start = time.perf_counter()
        result = fn()
        seconds[stage] = time.perf_counter() - start
        return result

    mod = timed("import", lambda: import_model(model, shapes))
    inputs, outputs = _signature(mod)
    graph = None
    if not kernel_graph.calls_kernels(mod):
        if options.dump_dir is not None:
            write_dump(options.dump_dir, label, ".relax.json", tvm.ir.save_json(mod))
            write_dump(options.dump_dir, label, ".relax.txt", mod.script())
        graph = timed(
            "kernel graph",
            lambda: kernel_graph.build(mod, spec.target, fuse=options.fuse, fast_math=options.fast_math),
        )
        mod = kernel_graph.to_relax(graph, weights=spec.spec.kind in export.PROJECTS)
    text = mod["main"].script()
    with kernel_graph.cuda_graph.asking(options.cuda_graph):
        lowered = timed("memory plan", lambda: kernel_graph.vm_passes(spec.target)(mod))
    total = sum(isinstance(func, tirx.PrimFunc) for func in mod.functions.values())
    done = 0

    def kernel_done(record: pipeline.KernelRecord) -> None:
        nonlocal done
        done += 1
        notify("kernels", done, total, record.name)

    with pipeline.recording(options, kernel_done) as records:
        library = timed("kernels", lambda: _build(lowered, spec.target, records))
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
    )
    return Executable(library, info, graph)


def _build(
    mod: tvm.IRModule, target: tvm.target.Target, records: Mapping[str, pipeline.KernelRecord]
) -> tvm.runtime.Module:
    """The machine code of a model; UnsupportedOperatorError where TVM fails on what is left to it."""
    try:
        return relax.build(mod, target, relax_pipeline=None)
    except UirError:
        raise
    except Exception as error:  # of the many that TVM raises
        left = [record.name for record in records.values() if record.fallback]
        if not left:
            raise
        raise UnsupportedOperatorError(
            f"TVM's own lowering fails on kernels without an iGraph: {', '.join(left)}",
            where=str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__,
            need="kernels that TVM lowers for the host, where none of ours fits",
            remedy="compute these operators in another dtype, or express the model by others",
        ) from error


def import_model(model: Any, shapes: Shapes = None) -> tvm.IRModule:
    """A normalised Relax module of anything that `compile` takes.

    Raises
    ------
    FrontendError
        See `compile`.
    """
    from . import kernel_graph

    mod = _imported(model, shapes)
    # TVM's importers lower some operators themselves
    return kernel_graph.legalize_rest(mod) if kernel_graph.calls_kernels(mod) else mod


def _imported(model: Any, shapes: Shapes) -> tvm.IRModule:
    """A module of operators, or of operators beside calls of kernels."""
    from . import frontend, kernel_graph

    if isinstance(model, tvm.IRModule):
        functions = {gvar.name_hint: func for gvar, func in model.functions.items()}
        if not isinstance(functions.get("main"), relax.Function):
            raise FrontendError(
                "The module has no Relax function 'main'.",
                need="a Relax function named main",
                limit="it has " + (", ".join(functions) or "no function"),
                remedy="rename the model's function, or pass a PrimFunc by itself",
            )
        return model if kernel_graph.calls_kernels(model) else frontend.normalize(model)
    if isinstance(model, tirx.PrimFunc):
        return frontend.from_prim_func(model)
    if isinstance(model, IGraph):
        return frontend.from_igraph(model)
    if isinstance(model, str | pathlib.Path):
        return _import_file(pathlib.Path(model), shapes)
    kind = type(model).__module__.partition(".")[0]
    if kind == "torch" and type(model).__name__ == "ExportedProgram":
        return frontend.from_torch(model)
    if kind == "onnx":
        return frontend.from_onnx(model, shapes=shapes)
    raise FrontendError(
        f"A {type(model).__name__} cannot be compiled.",
        need="a Relax IRModule, a torch.export.ExportedProgram, an ONNX model or a file of one",
        remedy="torch modules: pass torch.export.export(module, args)",
    )


def _import_file(path: pathlib.Path, shapes: Shapes) -> tvm.IRModule:
    reader = next((read for suffix, read in READERS.items() if path.name.endswith(suffix)), None)
    if path.is_dir():
        raise ModelFormatError(
            f"{path} is a folder.", need="a file, one of " + ", ".join(READERS), remedy="name the file"
        )
    if reader is None:
        raise ModelFormatError(
            f"{path} has no known kind of file.",
            need=", ".join(READERS),
            remedy="export the model to one of these",
        )
    if not path.is_file():
        raise ModelFormatError(f"There is no file {path}.", remedy="check the path")
    return reader(path, shapes)


def _torch_program(file: pathlib.Path, _: Shapes) -> tvm.IRModule:
    from . import frontend

    from_torch = frontend.from_torch  # says so where torch is not installed
    import torch

    # Its own complaint about the archive would come before ours.
    logging.getLogger("torch.export.pt2_archive").setLevel(logging.ERROR)
    try:
        program = torch.export.load(file)
    except Exception as error:  # torch's loader raises many kinds
        raise ModelFormatError(
            f"{file} is no exported program of torch, or a truncated one.",
            need=(str(error).strip() or type(error).__name__).splitlines()[0],
            remedy="save it with torch.export.save(program, path)",
        ) from error
    return from_torch(program)


def _relax_dump(file: pathlib.Path, _: Shapes) -> tvm.IRModule:
    try:
        mod = tvm.ir.load_json(file.read_text())
    except Exception as error:  # TVM's reader raises whatever its C++ throws
        raise ModelFormatError(
            f"{file} is no dump of a Relax module, or a truncated one.",
            need=(str(error).strip() or type(error).__name__).splitlines()[0],
            remedy="dump it with --dump",
        ) from error
    return import_model(mod)


def _tir_dump(file: pathlib.Path, _: Shapes) -> tvm.IRModule:
    from . import frontend

    return frontend.from_prim_func(_dumped(file, "tir"), _kernel_name(file, ".tir.json"))


def _igraph_dump(file: pathlib.Path, _: Shapes) -> tvm.IRModule:
    from . import frontend

    return frontend.from_igraph(_dumped(file, "igraph"))


def _optimized_dump(file: pathlib.Path, _: Shapes) -> tvm.IRModule:
    from . import frontend

    return frontend.from_igraph(_dumped(file, "optimize").graph)


def _dumped(file: pathlib.Path, name: str) -> Any:
    (stage,) = [stage for stage in pipeline.STAGES if stage.name == name]
    return pipeline.read_dump(file, stage, None)


def _kernel_name(file: pathlib.Path, suffix: str) -> str:
    """A kernel's name for code generation, of a file's name."""
    return re.sub(r"\W", "_", file.name.removesuffix(suffix)) or "kernel"


def _onnx_model(file: pathlib.Path, shapes: Shapes) -> tvm.IRModule:
    from . import frontend

    return frontend.from_onnx(file, shapes=shapes)


#: How a file is read, by the end of its name.
READERS: Mapping[str, Callable[[pathlib.Path, Shapes], tvm.IRModule]] = {
    ".onnx": _onnx_model,
    ".pt2": _torch_program,
    ".relax.json": _relax_dump,
    ".tir.json": _tir_dump,
    ".opt.igraph": _optimized_dump,
    ".igraph": _igraph_dump,
}


def model_name(model: Any) -> str:
    """How reports call a model: its file's name without the suffix, else ``model``."""
    return _stem(pathlib.Path(model)) if isinstance(model, str | pathlib.Path) else "model"


def _stem(path: pathlib.Path) -> str:
    """A file's name without the suffix that says its kind."""
    return next((path.name.removesuffix(end) for end in READERS if path.name.endswith(end)), path.stem)


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
    return KernelInfo(
        name, record.hero, record.recipe, why, texts, seconds, record.num_phases, steps, _code_of(record)
    )


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
        code["params"] = [attrs.asdict(param) for param in source.params]
        code["workspace"] = [{"name": w.name, "bytes": w.nbytes} for w in source.workspace]
        code["workspace_bytes"] = sum(workspace.nbytes for workspace in source.workspace)
        code["hardware"] = source.hardware
        code["printer"] = dict(source.report)
    if cubin is not None:
        code["compiler"] = cubin.described()
    return code
