# SPDX-License-Identifier: Apache-2.0
"""Anything that is a model -> a normalised Relax module: modules, exported programs, files of every kind."""

from __future__ import annotations

import logging
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx

from . import pipeline
from .errors import DynamicShapeError, FrontendError, ModelFormatError, OpenSizeError, first_line
from .frontend.named_state import Pairs
from .frontend.open_model import BoundAtOnce, OpenModel, SymbolicForm, has_open_sizes
from .frontend.relax_symbols import OpenModule, is_open
from .igraph import IGraph
from .sizes.size_space import SizeSpace, reading_open_sizes
from .sizes.symbolic_shapes import OpenSignature, Sizes

#: Shapes for inputs with dynamic dimensions, by name.
Shapes = Mapping[str, tuple[int, ...]] | None
#: Inputs that are constants in a compilation, by name.
Values = Mapping[str, Any] | None


@attrs.frozen
class Door:
    """What `uir_tvm.compile` is told of a model beside its shapes and values.

    Attributes
    ----------
    args : sequence, optional
        Example arguments of a module, by place.
    kwargs : mapping, optional
        The same by name.
    converters : mapping, optional
        Of users' operators (`frontend.from_torch`).
    strict : bool
        Whether operators without a converter are refused; otherwise PyTorch computes them.
    dynamic_shapes : optional
        Which axes of a module's arguments are of any size (``torch.export.export``).
    entry : str
        Of a Relax module, the function to compile.
    state : mapping or bool, optional
        Inputs that are state, and the results that are their next values (`frontend.named_state`).
    """

    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    converters: Mapping[str, Any] | None = None
    strict: bool = False
    dynamic_shapes: Any = None
    entry: str = "main"
    state: Pairs | None = None


def import_model(
    model: Any,
    shapes: Shapes = None,
    values: Values = None,
    door: Door | None = None,
    sizes: Sizes | None = None,
) -> tvm.IRModule:
    """A normalised Relax module of anything that `uir_tvm.compile` takes.

    Raises
    ------
    DynamicShapeError
        Sizes are open; what is left of them is in its ``model``.
    FrontendError
        See `uir_tvm.compile`.
    """
    from . import frontend, kernel_graph

    pairs = None if door is None else door.state
    try:
        mod = _imported(model, shapes, values, door or Door())
    except DynamicShapeError as error:
        if error.model is None or not (sizes or shapes):
            raise
        mod = _bound(error.model, sizes or {}, shapes or {})
    else:
        if sizes:
            OpenSignature(()).known(sizes)
    if pairs:
        mod = frontend.named_state(mod, pairs, results_of(model))
    # TVM's importers lower some operators themselves
    if not kernel_graph.calls_kernels(mod):
        return mod
    mod = kernel_graph.legalize_rest(mod)
    # kernels of nothing are not called any more
    return mod if kernel_graph.calls_kernels(mod) else frontend.normalize(mod)


def exported(model: Any, door: Door) -> tuple[Any, Door]:
    """A module of PyTorch as an exported program, whose arguments are known; anything else as it is.

    Raises
    ------
    FrontendError
        PyTorch cannot export it, or there are no arguments.
    """
    if not is_torch_module(model):
        return model, door
    from . import frontend

    program = frontend.exported_program(model, door.args, door.kwargs, door.dynamic_shapes)
    return program, attrs.evolve(door, args=None, kwargs=None, dynamic_shapes=None)


def results_of(model: Any) -> list[str]:
    """The names of an ONNX model's results; of others none."""
    is_file = isinstance(model, str | pathlib.Path) and str(model).endswith(".onnx")
    if not is_file and type(model).__module__.partition(".")[0] != "onnx":
        return []
    from .frontend.onnx.model_file import load

    return [value.name for value in load(model).graph.output]


def _bound(model: OpenModel, sizes: Sizes, shapes: Mapping[str, tuple[int, ...]]) -> tvm.IRModule:
    """The module of a model for these sizes; DynamicShapeError where some are still open."""
    signature = model.signature
    known = {
        name: shape for name, shape in shapes.items() if name in {each.name for each in signature.inputs}
    }
    left = model.fixed({**signature.sizes_in(known), **sizes})
    if left.signature.symbols:
        raise has_open_sizes(left)
    return left.module(left.signature.shapes({}))


def _imported(model: Any, shapes: Shapes, values: Values, door: Door) -> tvm.IRModule:
    """A module of operators, or of operators beside calls of kernels."""
    from . import frontend

    if isinstance(model, tvm.IRModule):
        model = frontend.flat_module(model, door.entry)
        return _relax_module(model)
    if isinstance(model, str | pathlib.Path):
        return _import_file(pathlib.Path(model), shapes, values, door)
    if door.entry != Door().entry:
        raise FrontendError(
            f"A {type(model).__name__} has no function {door.entry!r}.",
            need="a Relax module, whose functions have names",
            remedy="leave out entry= (--entry)",
        )
    if isinstance(model, tirx.PrimFunc):
        return frontend.from_prim_func(model)
    if isinstance(model, IGraph):
        return frontend.from_igraph(model)
    kind = type(model).__module__.partition(".")[0]
    if is_torch_module(model) or (kind == "torch" and type(model).__name__ == "ExportedProgram"):
        return frontend.from_torch(
            model,
            door.args,
            door.kwargs,
            custom_convert_map=dict(door.converters or {}),
            strict=door.strict,
            dynamic_shapes=door.dynamic_shapes,
        )
    if kind == "onnx":
        return frontend.from_onnx(model, shapes=shapes, values=values)
    raise FrontendError(
        f"A {type(model).__name__} cannot be compiled.",
        need="a Relax IRModule, a torch.nn.Module with args, a torch.export.ExportedProgram, an ONNX model "
        "or a file of one",
        remedy="export it to one of these",
    )


def _relax_module(model: tvm.IRModule) -> tvm.IRModule:
    """A Relax module as the kernel graph reads it, or handed on where sizes are open."""
    from . import frontend, kernel_graph

    if not is_open(model):
        return model if kernel_graph.calls_kernels(model) else frontend.normalize(model)
    opened = OpenModule(model)
    whole = SymbolicForm(
        opened.variables, lambda space: _symbolic_module(opened.whole(), space), lambda sizes: None
    )

    def bound(sizes: Sizes) -> tvm.IRModule:
        return _relax_module(opened.bound(sizes))

    raise has_open_sizes(BoundAtOnce(opened.signature, bound, symbolic=whole))


def _symbolic_module(model: tvm.IRModule, space: SizeSpace) -> tvm.IRModule:
    """A Relax module with symbols as the kernel graph reads it."""
    from . import frontend, kernel_graph

    if kernel_graph.calls_kernels(model):
        raise OpenSizeError(
            "The module calls kernels, which have symbols of their own.",
            need="operators of Relax",
            remedy="leave the kernels to uir_tvm",
        )
    with reading_open_sizes(space):
        return frontend.normalize(model)


def is_torch_module(model: Any) -> bool:
    """Whether it is a ``torch.nn.Module`` (torch itself is not imported for the question)."""
    bases = [(base.__module__, base.__name__) for base in type(model).__mro__]
    return ("torch.nn.modules.module", "Module") in bases


def _import_file(path: pathlib.Path, shapes: Shapes, values: Values, door: Door) -> tvm.IRModule:
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
    return reader(path, shapes, values, door)


def _torch_program(file: pathlib.Path, shapes: Shapes, values: Values, door: Door) -> tvm.IRModule:
    from . import frontend

    _ = frontend.from_torch  # says so where torch is not installed
    import torch

    # Its own complaint about the archive would come before ours.
    logging.getLogger("torch.export.pt2_archive").setLevel(logging.ERROR)
    try:
        program = torch.export.load(file)
    except Exception as error:  # torch's loader raises many kinds
        raise ModelFormatError(
            f"{file} is no exported program of torch, or a truncated one.",
            need=first_line(error),
            remedy="save it with torch.export.save(program, path)",
        ) from error
    return _imported(program, shapes, values, door)


def _relax_dump(file: pathlib.Path, shapes: Shapes, values: Values, door: Door) -> tvm.IRModule:
    try:
        mod = tvm.ir.load_json(file.read_text())
    except Exception as error:  # TVM's reader raises whatever its C++ throws
        raise ModelFormatError(
            f"{file} is no dump of a Relax module, or a truncated one.",
            need=first_line(error),
            remedy="dump it with --dump",
        ) from error
    return _imported(mod, shapes, values, door)


def _tir_dump(file: pathlib.Path, _shapes: Shapes, _values: Values, _door: Door) -> tvm.IRModule:
    from . import frontend

    return frontend.from_prim_func(_dumped(file, "tir"), _kernel_name(file, ".tir.json"))


def _igraph_dump(file: pathlib.Path, _shapes: Shapes, _values: Values, _door: Door) -> tvm.IRModule:
    from . import frontend

    return frontend.from_igraph(_dumped(file, "igraph"))


def _optimized_dump(file: pathlib.Path, _shapes: Shapes, _values: Values, _door: Door) -> tvm.IRModule:
    from . import frontend

    return frontend.from_igraph(_dumped(file, "optimize").graph)


def _dumped(file: pathlib.Path, name: str) -> Any:
    (stage,) = [stage for stage in pipeline.STAGES if stage.name == name]
    return pipeline.read_dump(file, stage, None)


def _kernel_name(file: pathlib.Path, suffix: str) -> str:
    """A kernel's name for code generation, of a file's name."""
    return re.sub(r"\W", "_", file.name.removesuffix(suffix)) or "kernel"


def _onnx_model(file: pathlib.Path, shapes: Shapes, values: Values, _door: Door) -> tvm.IRModule:
    from . import frontend

    return frontend.from_onnx(file, shapes=shapes, values=values)


def _relay_model(file: pathlib.Path, shapes: Shapes, _values: Values, _door: Door) -> tvm.IRModule:
    from . import frontend

    from_relay = frontend.from_relay  # says so where its grammar's package is not installed
    from .frontend.relay import params_beside

    return from_relay(file, params_beside(file), shapes=shapes)


#: How a file is read, by the end of its name.
READERS: Mapping[str, Callable[[pathlib.Path, Shapes, Values, Door], tvm.IRModule]] = {
    ".onnx": _onnx_model,
    ".pt2": _torch_program,
    ".relax.json": _relax_dump,
    ".tir.json": _tir_dump,
    ".opt.igraph": _optimized_dump,
    ".igraph": _igraph_dump,
    ".relay": _relay_model,
    ".json": _relay_model,
}


def model_name(model: Any) -> str:
    """How reports call a model: its file's name without the suffix, else ``model``."""
    return _stem(pathlib.Path(model)) if isinstance(model, str | pathlib.Path) else "model"


def _stem(path: pathlib.Path) -> str:
    """A file's name without the suffix that says its kind."""
    return next((path.name.removesuffix(end) for end in READERS if path.name.endswith(end)), path.stem)
