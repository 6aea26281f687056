# SPDX-License-Identifier: Apache-2.0
"""Reading an ONNX model, and ONNX's own rules."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from ...errors import ModelFormatError, UnsupportedOperatorError
from .known import STANDARD_DOMAINS, VersionedNode


def load(model: str | os.PathLike[str] | onnx.ModelProto) -> onnx.ModelProto:
    """A checked model of our own to work on.

    Raises
    ------
    ModelFormatError
        The file is missing, truncated or no ONNX model, or the model breaks ONNX's rules.
    UnsupportedOperatorError
        The standard knows no such operator at the model's opset.
    """
    loaded = _load(model)
    _check_version(loaded)
    _check_known(loaded)
    _check_model(loaded, "" if isinstance(model, onnx.ModelProto) else str(model))
    return loaded


def _check_version(model: onnx.ModelProto) -> None:
    """The versions of the standard's operators are known."""
    for opset in model.opset_import:
        newest = onnx.defs.onnx_opset_version()
        if opset.domain in ("", "ai.onnx") and opset.version > newest:
            raise ModelFormatError(
                f"the model is of opset {opset.version}",
                need=f"opset {newest} or older, which the installed onnx {onnx.__version__} knows",
                remedy="install a newer onnx, or convert the model (onnx.version_converter)",
            )


def _check_known(model: onnx.ModelProto) -> None:
    """Operators that the model takes from the standard are in it."""
    versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    local = {(function.domain, function.name) for function in model.functions}
    unknown: dict[str, str] = {}
    for node in model.graph.node:
        if node.domain not in STANDARD_DOMAINS or (node.domain, node.op_type) in local:
            continue
        if VersionedNode(node, versions.get("", 1)).schema is None:
            unknown.setdefault(node.op_type, VersionedNode(node, 1).text)
    if unknown:
        raise UnsupportedOperatorError(
            f"unsupported ONNX operator{'s' if len(unknown) > 1 else ''}: {', '.join(sorted(unknown))}",
            where="; ".join(unknown.values()),
            limit=f"opset {versions.get('', 1)} has no such operator",
            remedy="export with the opset that has it, or define the operator as a model function",
        )


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
            onnx.checker.check_model(_with_told_outputs(model))
        elif path:
            onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        raise ModelFormatError(
            f"{path or 'the model'} breaks the rules of ONNX: {str(error).strip().splitlines()[0]}",
            remedy="export the model again; onnx.checker.check_model says more",
        ) from error


def _with_told_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model for ONNX's checker, which asks for types of outputs that a graph may leave to be inferred."""
    untold = [
        place
        for place, output in enumerate(model.graph.output)
        if not output.HasField("type")
        or (output.type.tensor_type.elem_type and not output.type.tensor_type.HasField("shape"))
    ]
    if not untold:
        return model
    told = onnx.ModelProto()
    told.CopyFrom(model)
    for place in untold:
        tensor = told.graph.output[place].type.tensor_type
        tensor.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
        tensor.shape.SetInParent()
    return told
