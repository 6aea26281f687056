# SPDX-License-Identifier: Apache-2.0
"""Clean-ups of an ONNX model before its import: fixed shapes, inlined functions, constant expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from ..errors import ShapeError
from .fold import GROWTH_LIMIT
from .onnx_rewrites import rewrite

# Their results are not a function of their inputs.
RANDOM = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli".split()
)
# Initializers of more bytes are left out of shape inference, which needs only their types.
WEIGHT_BYTES = 1 << 16
# Each round folds what the shapes found by the last one make constant; models need one or two.
MAX_ROUNDS = 8

Arrays = dict[str, np.ndarray]


def graph_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Inputs that a caller passes: those that no initializer fills."""
    filled = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in filled]


def fix_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write given sizes into the model's inputs; a symbol fixed for one input is fixed for all.

    Raises
    ------
    ShapeError
        For a name that is no input, a rank or size that contradicts the model, a symbol given two sizes,
        and for an input that keeps a dynamic dimension.
    """
    inputs = {value.name: value for value in graph_inputs(model.graph)}
    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise ShapeError(
            f"shapes names {unknown[0]!r}, which is no input of the model",
            need=f"one of {', '.join(sorted(inputs))}",
        )
    symbols: dict[str, int] = {}
    for name, shape in shapes.items():
        _fix_input(inputs[name], shape, symbols)
    for value in inputs.values():
        _fix_symbols(value, symbols)


def _fix_input(value: onnx.ValueInfoProto, shape: Sequence[int], symbols: dict[str, int]) -> None:
    """Give one input its shape and record what the sizes say about symbols."""
    tensor = value.type.tensor_type
    dims = list(tensor.shape.dim)
    declared = tuple(_dim_text(dim) for dim in dims)
    clash = tensor.HasField("shape") and len(dims) != len(shape)
    for dim, size in zip(dims, shape, strict=False):
        clash = clash or (dim.HasField("dim_value") and dim.dim_value != size)
        if dim.dim_param and symbols.setdefault(dim.dim_param, size) != size:
            raise ShapeError(
                f"shapes give the symbol {dim.dim_param!r} the sizes {symbols[dim.dim_param]} and {size}",
                where=f"input {value.name!r}, declared {declared}",
                remedy="give one size for each symbol",
            )
    if clash or any(size < 0 for size in shape):
        raise ShapeError(
            f"shape {tuple(shape)} does not fit input {value.name!r}", need=f"a shape like {declared}"
        )
    del tensor.shape.dim[:]
    for size in shape:
        tensor.shape.dim.add().dim_value = int(size)


def _fix_symbols(value: onnx.ValueInfoProto, symbols: Mapping[str, int]) -> None:
    """Replace known symbols in an input's shape; refuse what stays unknown."""
    tensor = value.type.tensor_type
    for dim in tensor.shape.dim:
        if dim.dim_param in symbols:
            dim.dim_value = symbols[dim.dim_param]
    if not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim):
        declared = [_dim_text(dim) for dim in tensor.shape.dim] if tensor.HasField("shape") else "unknown"
        sizes = ", ".join(_dim_text(dim) for dim in tensor.shape.dim) or "..."
        raise ShapeError(
            f"input {value.name!r} has a dynamic dimension",
            where=f"shape {declared}",
            need="fixed shapes",
            remedy=f"pass shapes={{{value.name!r}: ({sizes})}} with a number for each symbol",
        )


def _dim_text(dim: onnx.TensorShapeProto.Dimension) -> str:
    return str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"


def prepare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inline local functions, fold constant expressions, apply rewrites; the argument may be changed."""
    if model.functions:
        model = inliner.inline_local_functions(model)
    for _ in range(MAX_ROUNDS):
        if not _fold_round(model):
            break
    rewrite(model, _infer(model))
    return model


def _fold_round(model: onnx.ModelProto) -> int:
    """Evaluate every node of constant inputs, and every Shape of a known shape; how many there were."""
    graph = model.graph
    types = _infer(model)
    known: Arrays = {}
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    kept, folded = [], []
    for node in graph.node:
        values = _evaluate(node, known, initializers, types, model)
        if values is None:
            kept.append(node)
            continue
        known.update(values)
        folded.append(node)
    read = {name for node in kept for name in node.input} | {value.name for value in graph.output}
    read |= {name for node in kept for name in _captured(node)}
    del graph.node[:]
    graph.node.extend(kept)
    for node in folded:
        for name in node.output:
            if name in read:
                graph.initializer.append(numpy_helper.from_array(known[name], name))
    return len(folded)


def _captured(node: onnx.NodeProto) -> list[str]:
    """Outer values that the subgraphs of a node may read."""
    graphs = [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    return [name for graph in graphs for inner in graph.node for name in [*inner.input, *_captured(inner)]]


def _infer(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Static shapes of the graph's values, by name; those that inference leaves open are absent."""
    light = onnx.ModelProto()
    light.ir_version = model.ir_version
    light.opset_import.extend(model.opset_import)
    graph = light.graph
    graph.name = "shapes"
    graph.node.extend(model.graph.node)
    graph.input.extend(graph_inputs(model.graph))
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > WEIGHT_BYTES:
            graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            )
        else:
            graph.initializer.append(tensor)
    for value in model.graph.output:
        graph.output.add().name = value.name
    inferred = shape_inference.infer_shapes(light, data_prop=True).graph
    shapes = {}
    for value in [*inferred.value_info, *inferred.input, *inferred.output]:
        tensor_type = value.type.tensor_type
        if tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor_type.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in tensor_type.shape.dim)
    shapes.update({tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer})
    return shapes


def _evaluate(
    node: onnx.NodeProto,
    known: Arrays,
    initializers: Mapping[str, onnx.TensorProto],
    shapes: Mapping[str, tuple[int, ...]],
    model: onnx.ModelProto,
) -> Arrays | None:
    """Outputs of a node that are constant, or None."""
    if node.op_type == "Shape" and node.input[0] in shapes:
        bounds = {attribute.name: attribute.i for attribute in node.attribute}
        shape = np.array(shapes[node.input[0]], dtype=np.int64)
        return {node.output[0]: shape[bounds.get("start", 0) : bounds.get("end", len(shape))]}
    if node.op_type in RANDOM or any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
        return None
    names = [name for name in node.input if name]
    if any(name not in known and name not in initializers for name in names):
        return None
    out_bytes = sum(8 * int(np.prod(shapes[name])) for name in node.output if name in shapes)
    in_bytes = sum(8 * int(np.prod(shapes.get(name, ()))) for name in names)
    if node.op_type != "Constant" and out_bytes > max(GROWTH_LIMIT, in_bytes):
        return None
    feeds = {
        name: known[name] if name in known else numpy_helper.to_array(initializers[name]) for name in names
    }
    values = _run(node, feeds, model)
    if values is None or any(not isinstance(value, np.ndarray | np.generic) for value in values):
        return None
    return {name: np.asarray(value) for name, value in zip(node.output, values, strict=False) if name}


def _run(node: onnx.NodeProto, feeds: Arrays, model: onnx.ModelProto) -> list[np.ndarray] | None:
    """One node by ONNX's reference implementation; None where that has no such operator."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "node", inputs, outputs)
    single = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(single).run(None, feeds))
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return None  # left to the importer, whose error names the node
