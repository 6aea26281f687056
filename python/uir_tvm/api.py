# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.compile``: a whole model in, an executable out."""

from __future__ import annotations

import logging
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import relax

from . import pipeline
from .errors import FrontendError, ModelFormatError, ShapeError
from .options import CompileOptions
from .runtime.executable import Executable, KernelInfo, ModelInfo
from .runtime.tensors import TensorSpec

log = logging.getLogger(__name__)

#: Called with (stage, done, total, detail) while a model compiles; total 0 = not known yet.
Progress = Callable[[str, int, int, str], None]


def compile(
    model: Any,
    target: str | tvm.target.Target = "uir-cpu",
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str | None = None,
    options: CompileOptions | None = None,
    progress: Progress | None = None,
) -> Executable:
    """Compile a model for a uir target.

    Parameters
    ----------
    model : tvm.IRModule, torch.export.ExportedProgram, onnx.ModelProto, str or Path
        A Relax module with a function ``main``; an exported program; an ONNX model; or a file:
        ``.onnx``, ``.pt2`` (torch.export.save), ``.relax.json`` (a dump).
    target : str or Target
        ``uir-cpu``; see ``uir targets``.
    shapes : mapping of str to tuple of int, optional
        Shapes for inputs with dynamic dimensions (ONNX).
    name : str, optional
        Name in reports; default: the file's or ``model``.
    options : CompileOptions, optional
        Verification and dumps.
    progress : callable, optional
        Called as stages advance.

    Returns
    -------
    Executable
        Callable with NumPy arrays or torch tensors.

    Raises
    ------
    FrontendError
        The model cannot be imported (unknown operator, truncated file, dynamic dimension).
    TargetError
        An unknown target or hardware model.
    """
    from . import autoload, kernel_graph
    from .target import registry

    autoload.register()
    notify = progress or (lambda *_: None)
    options = options or CompileOptions()
    spec = registry.resolve(target)
    seconds: dict[str, float] = {}
    label = name or (pathlib.Path(model).stem if isinstance(model, str | pathlib.Path) else "model")

    def timed(stage: str, fn: Callable[[], Any]) -> Any:
        notify(stage, 0, 0, "")
        start = time.perf_counter()
        result = fn()
        seconds[stage] = time.perf_counter() - start
        return result

    mod = timed("import", lambda: import_model(model, shapes))
    inputs, outputs = _signature(mod)
    if options.dump_dir is not None:
        pipeline.write_dump(options.dump_dir, label, ".relax.json", tvm.ir.save_json(mod))
        pipeline.write_dump(options.dump_dir, label, ".relax.txt", mod.script())
    graph = timed("kernel graph", lambda: kernel_graph.build(mod, spec.target))
    lowered = timed("memory plan", lambda: kernel_graph.vm_passes()(kernel_graph.to_relax(graph)))
    total = len(graph.kernels)
    done = 0

    def kernel_done(record: pipeline.KernelRecord) -> None:
        nonlocal done
        done += 1
        notify("kernels", done, total, record.name)

    with pipeline.recording(options, kernel_done) as records:
        library = timed("kernels", lambda: _build(lowered, spec.target))
    info = ModelInfo(
        name=label,
        target=spec.name,
        inputs=inputs,
        outputs=outputs,
        kernels=tuple(_info_of(r) for r in records.values()),
        graph=graph.summary(),
        seconds=seconds,
    )
    return Executable(library, info, graph)


def _build(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.runtime.Module:
    return relax.build(mod, target, relax_pipeline=None)


def import_model(model: Any, shapes: Mapping[str, tuple[int, ...]] | None = None) -> tvm.IRModule:
    """A normalised Relax module of anything that `compile` takes.

    Raises
    ------
    FrontendError
        See `compile`.
    """
    from . import frontend

    if isinstance(model, tvm.IRModule):
        if "main" not in [g.name_hint for g in model.get_global_vars()]:
            raise FrontendError("The module has no function 'main'.", need="a Relax function named main")
        return frontend.normalize(model)
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


def _import_file(path: pathlib.Path, shapes: Mapping[str, tuple[int, ...]] | None) -> tvm.IRModule:
    from . import frontend

    def torch_program(file: pathlib.Path) -> tvm.IRModule:
        import torch

        try:
            return frontend.from_torch(torch.export.load(file))
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            raise ModelFormatError(
                f"{file} is no exported program of torch.",
                need=str(error).splitlines()[0],
                remedy="save it with torch.export.save(program, path)",
            ) from error

    def dump(file: pathlib.Path) -> tvm.IRModule:
        try:
            return import_model(tvm.ir.load_json(file.read_text()))
        except (ValueError, RuntimeError, TypeError) as error:
            raise ModelFormatError(
                f"{file} is no dump of a Relax module.",
                need=str(error).splitlines()[0],
                remedy="dump it with --dump",
            ) from error

    readers: dict[str, Callable[[pathlib.Path], tvm.IRModule]] = {
        ".onnx": lambda file: frontend.from_onnx(file, shapes=shapes),
        ".pt2": torch_program,
        ".json": dump,
    }
    if path.suffix not in readers:
        raise ModelFormatError(
            f"{path} has no known kind of file.",
            need=", ".join(readers),
            remedy="export the model to one of these",
        )
    if not path.is_file():
        raise ModelFormatError(f"There is no file {path}.", remedy="check the path")
    return readers[path.suffix](path)


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
        if int(extent) == 0:
            raise ShapeError(
                f"'{name}' has a dimension of size zero.",
                limit="every dimension at least 1",
                remedy="there is nothing to compute; drop it",
            )
        shape.append(int(extent))
    return TensorSpec(name, tuple(shape), str(type_.dtype))


def _info_of(record: pipeline.KernelRecord) -> KernelInfo:
    texts = {s.name: s.dump(record.products[s.name]) for s in pipeline.STAGES if s.name in record.products}
    if "tir" in texts:
        texts["tir"] = record.products["tir"].script()
    return KernelInfo(record.name, record.hero, record.recipe, record.fallback, texts, dict(record.seconds))
