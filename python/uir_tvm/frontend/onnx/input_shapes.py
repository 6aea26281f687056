# SPDX-License-Identifier: Apache-2.0
"""The shapes of a model's inputs, fixed before the import."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

import onnx

from ...errors import DynamicShapeError, ShapeError, UnsupportedOperatorError
from ...sizes.size_space import PARTS
from ...sizes.symbolic_shapes import FUNCTIONS, OpenInput, OpenSignature, Size
from .known import element_name

#: What exporters write for a size that they do not know: two of them need not be equal.
NAMELESS = ("?", "-1", "None", "none", "null", "unk", "unknown", "*")
#: Words that mean something else in expressions of sizes.
RESERVED = frozenset({*keyword.kwlist, *PARTS, *FUNCTIONS})


def graph_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Inputs that a caller passes: those that no initializer fills."""
    filled = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in filled]


def forget_nameless(graph: onnx.GraphProto) -> None:
    """Make sizes unknown that are negative or of a name in `NAMELESS`, in subgraphs too."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if (dim.HasField("dim_value") and dim.dim_value < 0) or dim.dim_param.strip() in NAMELESS:
                dim.Clear()
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                forget_nameless(body)


def fix_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write given sizes into the model's inputs; a symbol fixed for one input is fixed for all.

    Names without meaning (`NAMELESS`, a negative size) are a size of their own each. So is a name to which
    ``shapes`` gives two sizes: exporters use one name for what is never compared.

    Raises
    ------
    ShapeError
        For a name that is no input, a rank or size that contradicts the model, and for an input that keeps a
        dynamic dimension.
    """
    forget_nameless(model.graph)
    inputs = {value.name: value for value in graph_inputs(model.graph)}
    for value in inputs.values():
        if value.type.WhichOneof("value") != "tensor_type":
            raise UnsupportedOperatorError(
                f"input {value.name!r} is no tensor",
                where=str(value.type.WhichOneof("value")),
                need="tensors as inputs",
                remedy="pass the tensors one by one",
            )
    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise ShapeError(
            f"shapes names {unknown[0]!r}, which is no input of the model",
            need=f"one of {', '.join(sorted(inputs))}",
        )
    symbols: dict[str, set[int]] = {}
    for name, shape in shapes.items():
        _fix_input(inputs[name], shape, symbols)
    for value in inputs.values():
        _fix_symbols(value, symbols)
    for value in inputs.values():
        _refuse_dynamic(value, symbols, list(inputs.values()))


def _fix_input(value: onnx.ValueInfoProto, shape: Sequence[int], symbols: dict[str, set[int]]) -> None:
    """Give one input its shape and record what the sizes say about symbols."""
    tensor = value.type.tensor_type
    dims = list(tensor.shape.dim)
    clash = tensor.HasField("shape") and len(dims) != len(shape)
    for dim, size in zip(dims, shape, strict=False):
        clash = clash or (dim.HasField("dim_value") and dim.dim_value > 0 and dim.dim_value != size)
        if dim.dim_param:
            symbols.setdefault(dim.dim_param, set()).add(int(size))
    if clash or any(size < 0 for size in shape):
        declared = tuple(_dim_text(dim) for dim in dims)
        raise ShapeError(
            f"shape {tuple(shape)} does not fit input {value.name!r}", need=f"a shape like {declared}"
        )
    del tensor.shape.dim[:]
    for size in shape:
        tensor.shape.dim.add().dim_value = int(size)


def _fix_symbols(value: onnx.ValueInfoProto, symbols: Mapping[str, set[int]]) -> None:
    """Replace known symbols in an input's shape."""
    tensor = value.type.tensor_type
    for dim in tensor.shape.dim:
        sizes = symbols.get(dim.dim_param, set())
        if len(sizes) == 1:
            dim.dim_value = min(sizes)


def signature_of(model: onnx.ModelProto) -> OpenSignature:
    """The inputs of a model; a size that has no name of its own has that of its input and axis."""
    forget_nameless(model.graph)
    found = []
    for value in graph_inputs(model.graph):
        tensor = value.type.tensor_type
        sizes = tuple(_size(dim, value.name, axis) for axis, dim in enumerate(tensor.shape.dim))
        found.append(OpenInput(value.name, sizes, element_name(tensor.elem_type)))
    return OpenSignature(found, related=False)


def _size(dim: onnx.TensorShapeProto.Dimension, name: str, axis: int) -> Size:
    """A number, or the name of a size."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    text = re.sub(r"\W+", "_", dim.dim_param.strip() or f"{name}_{axis}").strip("_")
    return text if text.isidentifier() and text not in RESERVED else f"s_{text}"


def _refuse_dynamic(
    value: onnx.ValueInfoProto, symbols: Mapping[str, set[int]], inputs: Sequence[onnx.ValueInfoProto]
) -> None:
    """Refuse an input of unknown sizes."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim):
        declared = [_dim_text(dim) for dim in tensor.shape.dim] if tensor.HasField("shape") else "unknown"
        text = ", ".join(_dim_text(dim) for dim in tensor.shape.dim) or "..."
        several = {
            f"{dim.dim_param!r} is {' and '.join(map(str, sorted(symbols[dim.dim_param])))}"
            for dim in tensor.shape.dim
            if dim.dim_param in symbols
        }
        ranked = all(other.type.tensor_type.HasField("shape") for other in inputs)
        error = DynamicShapeError if ranked else ShapeError
        raise error(
            f"input {value.name!r} has a dynamic dimension",
            where=f"shape {declared}" + (f"; elsewhere {', '.join(sorted(several))}" if several else ""),
            need="fixed shapes",
            remedy=f"pass shapes={{{value.name!r}: ({text})}} with a number for each symbol "
            f"(--shape {value.name}={text.replace(', ', 'x')}), or sizes={{symbol: number}} (--size)",
        )


def _dim_text(dim: onnx.TensorShapeProto.Dimension) -> str:
    return str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
