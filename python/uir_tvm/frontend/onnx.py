# SPDX-License-Identifier: Apache-2.0
"""ONNX -> Relax, through TVM's importer."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx
import tvm
from google.protobuf.message import DecodeError
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx as import_onnx
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

from ..errors import FrontendError, ModelFormatError, ShapeError, UnsupportedOperatorError
from ..one_at_a_time import one_at_a_time
from .normalize import normalize, replace_main
from .onnx_graph import fix_shapes, graph_inputs, prepare
from .relax_view import dtype_of, shape_of

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
# Operators that TVM's importer takes in ONNX Runtime's meaning, whatever domain the node is of.
MICROSOFT = frozenset(
    "Attention BiasGelu EmbedLayerNormalization FastGelu MatMulInteger16 SkipLayerNormalization".split()
)
SHARED = frozenset({"Gelu"})

_CONTROL = "has control flow that depends on data; replace it by Where, or import each branch by itself"
_RAGGED = "has an output whose shape depends on data; use Where or TopK"
_SEQUENCE = "makes a sequence or optional value; use plain tensors"

# The importer has converters for these, whose results no kernel graph expresses.
REFUSED: dict[str, str] = {
    "If": _CONTROL,
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _RAGGED),
    **dict.fromkeys(
        (
            "ConcatFromSequence",
            "Optional",
            "OptionalGetElement",
            "OptionalHasElement",
            "SequenceAt",
            "SequenceConstruct",
            "SequenceEmpty",
            "SequenceErase",
            "SequenceInsert",
            "SequenceLength",
            "SplitToSequence",
        ),
        _SEQUENCE,
    ),
}
# They vanish before the import.
FOLDED = frozenset({"Constant"})


@one_at_a_time
def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto, *, shapes: Mapping[str, Sequence[int]] | None = None
) -> tvm.IRModule:
    """Import an ONNX model as a normalised Relax module.

    Parameters
    ----------
    model : path or onnx.ModelProto
        A model is not changed.
    shapes : mapping of str to sequence of int, optional
        Sizes for inputs with dynamic dimensions. A symbol (``batch``) fixed for one input is fixed for all.

    Returns
    -------
    tvm.IRModule
        The form that `from_torch` returns: one Relax function ``main``, parameters named after the model's
        inputs (characters that no identifier has become ``_``), initializers as constants, result a
        tensor or the tuple of the model's outputs.

    Raises
    ------
    ModelFormatError
        For a file that is missing, truncated or no ONNX model, and for a model that breaks ONNX's rules.
    UnsupportedOperatorError
        Naming the operators that have no converter, the first node of each, and the remedy.
    ShapeError
        For a dynamic dimension that ``shapes`` does not fix, naming the input, and for a wrong shape.
    FrontendError
        Where the importer fails on an operator.
    """
    loaded = _load(model)
    _check_operators(loaded)
    _check_model(loaded, "" if isinstance(model, onnx.ModelProto) else str(model))
    fix_shapes(loaded, shapes or {})
    loaded = prepare(loaded)
    mod = normalize(_import(loaded))
    main = mod["main"].without_attr("num_input")
    _check_results(loaded, main)
    return replace_main(mod, main)


def _load(model: str | os.PathLike[str] | onnx.ModelProto) -> onnx.ModelProto:
    """A model of our own to work on."""
    if isinstance(model, onnx.ModelProto):
        return copy.deepcopy(model)
    path = Path(model)
    if not path.is_file():
        raise ModelFormatError(f"no ONNX file at {str(path)!r}", remedy="give the path of a .onnx file")
    try:
        loaded = onnx.load(str(path))
    except DecodeError as error:
        raise ModelFormatError(
            f"{str(path)!r} is no ONNX model, or a truncated one",
            where=f"{path.stat().st_size} bytes: {error}",
            remedy="export or download the file again",
        ) from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelFormatError(
            f"{str(path)!r} cannot be read: {error}",
            remedy="keep the model's external data files beside it",
        ) from error
    if not loaded.ir_version or not loaded.graph.output:
        raise ModelFormatError(
            f"{str(path)!r} is no ONNX model, or a truncated one",
            where=f"{path.stat().st_size} bytes: no IR version or no graph output",
            remedy="export or download the file again",
        )
    return loaded


def _check_model(model: onnx.ModelProto, path: str) -> None:
    """ONNX's own rules: names defined before use, attributes, types."""
    try:
        if model.ByteSize() < onnx.checker.MAXIMUM_PROTOBUF:
            onnx.checker.check_model(model)
        elif path:
            onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        raise ModelFormatError(
            f"{path or 'the model'} breaks the rules of ONNX: {str(error).strip().splitlines()[0]}",
            remedy="export the model again; onnx.checker.check_model says more",
        ) from error


def _check_operators(model: onnx.ModelProto) -> None:
    """Every node's operator has a converter, in the domain that the node names."""
    known = set(_get_convert_map()) | FOLDED
    local = {(function.domain, function.name) for function in model.functions}
    missing: dict[str, str] = {}
    reasons = {}
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    for node in nodes:
        name = node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}::{node.op_type}"
        if (node.domain, node.op_type) in local:
            continue
        fits = _fits_domain(node)
        if node.op_type in known and node.op_type not in REFUSED and fits:
            continue
        missing.setdefault(name, f"node {node.name or '(unnamed)'} = {name}, output {node.output[0]!r}")
        if node.op_type in REFUSED and fits:
            reasons[name] = f"{name} {REFUSED[node.op_type]}"
    if missing:
        raise UnsupportedOperatorError(
            f"unsupported ONNX operator{'s' if len(missing) > 1 else ''}: {', '.join(sorted(missing))}",
            where="; ".join(missing.values()),
            remedy="; ".join(reasons.values())
            or "export with standard operators (opset 13 to 20), or define the operator as a model function",
        )


def _fits_domain(node: onnx.NodeProto) -> bool:
    """Whether the importer, which looks at names alone, would take the node for what its domain means."""
    if node.domain == "com.microsoft":
        return node.op_type in MICROSOFT | SHARED
    return node.domain in STANDARD_DOMAINS and node.op_type not in MICROSOFT


class _PrintsOfThread(io.TextIOBase):
    """Keeps what the thread that makes it prints; what others print goes where it went before."""

    def __init__(self) -> None:
        self.said = io.StringIO()
        self._thread, self._before = threading.get_ident(), sys.stdout

    def write(self, text: str) -> int:
        return (self.said if threading.get_ident() == self._thread else self._before).write(text)

    def flush(self) -> None:
        if self._before is not None:
            self._before.flush()


def _import(model: onnx.ModelProto) -> tvm.IRModule:
    """TVM's import, its prints and warnings kept quiet, its errors typed."""
    out = _PrintsOfThread()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out):
            warnings.simplefilter("ignore")
            # the importer takes a written 0 for an open dimension
            return import_onnx(model, shape_dict=_input_shapes(model))
    except Exception as error:
        # The importer prints which operator it failed on before it raises.
        printed = out.said.getvalue().strip().splitlines()
        lines = str(error).strip().splitlines()
        raise FrontendError(
            f"TVM's ONNX importer fails: {lines[-1].strip() if lines else type(error).__name__}",
            where=printed[0].split(", with inputs")[0] if printed else "",
            remedy="export the model with static shapes, or with another opset",
        ) from error


def _input_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in graph_inputs(model.graph)
    }


def _check_results(model: onnx.ModelProto, main: relax.Function) -> None:
    """The imported function returns the shapes and dtypes that the model declares."""
    body_type = main.ret_ty
    results = list(body_type.fields) if isinstance(body_type, relax.TupleType) else [body_type]
    for value, result in zip(model.graph.output, results, strict=True):
        tensor = value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
        want_dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name if tensor.elem_type else None
        probe = relax.Var("result", result)
        shape = shape_of(probe)
        if shape is None:
            raise ShapeError(
                f"the shape of output {value.name!r} depends on data",
                need="fixed shapes",
                remedy="see shapes=",
            )
        wrong = tensor.HasField("shape") and (
            len(dims) != len(shape)
            or any(d is not None and d != s for d, s in zip(dims, shape, strict=False))
        )
        if wrong or (want_dtype and want_dtype != dtype_of(probe)):
            raise FrontendError(
                f"output {value.name!r} is imported as {shape} {dtype_of(probe)}, the model declares "
                f"{tuple(dims)} {want_dtype}",
                remedy="re-run onnx.shape_inference on the model and import again",
            )
