# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes in terms of others, where TVM's importer would answer with kernels instead of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

Tensors = Mapping[str, onnx.TensorProto]
Shapes = Mapping[str, tuple[int, ...]]
# A node, the model's constants, its values' shapes -> nodes and constants in its place, or None.
Rewrite = Callable[
    [onnx.NodeProto, Tensors, Shapes], "tuple[list[onnx.NodeProto], list[onnx.TensorProto]] | None"
]


def clip(
    node: onnx.NodeProto, constants: Tensors, shapes: Shapes
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]] | None:
    """Clip(x, low, high) -> Min(Max(x, low), high), without the bounds that are left out."""
    if len(node.input) < 2:
        return None  # the form before opset 11, with attributes
    bounds = [
        (operator, name) for operator, name in zip(("Max", "Min"), node.input[1:], strict=False) if name
    ]
    if not bounds:
        return [helper.make_node("Identity", [node.input[0]], list(node.output), name=node.name)], []
    nodes, value = [], node.input[0]
    for index, (operator, bound) in enumerate(bounds):
        result = node.output[0] if index == len(bounds) - 1 else f"{node.output[0]}__{operator.lower()}"
        nodes.append(helper.make_node(operator, [value, bound], [result], name=f"{node.name}__{operator}"))
        value = result
    return nodes, []


def tile(
    node: onnx.NodeProto, constants: Tensors, shapes: Shapes
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]] | None:
    """Tile(x, n) -> Reshape to (1, a, 1, b, ..), Expand to (n, a, m, b, ..), Reshape to (n*a, m*b, ..)."""
    shape, repeats = shapes.get(node.input[0]), constants.get(node.input[1])
    if shape is None or repeats is None:
        return None
    counts = [int(count) for count in numpy_helper.to_array(repeats)]
    pairs = list(zip(counts, shape, strict=True))
    steps = {
        "split": [size for pair in pairs for size in (1, pair[1])],
        "repeat": [size for pair in pairs for size in pair],
        "merge": [count * size for count, size in pairs],
    }
    nodes, tensors, value = [], [], node.input[0]
    for step, target in steps.items():
        name = f"{node.output[0]}__{step}"
        tensors.append(numpy_helper.from_array(np.array(target, dtype=np.int64), f"{name}_shape"))
        result = node.output[0] if step == "merge" else name
        operator = "Expand" if step == "repeat" else "Reshape"
        nodes.append(
            helper.make_node(operator, [value, f"{name}_shape"], [result], name=f"{node.name}__{step}")
        )
        value = result
    return nodes, tensors


REWRITES: dict[str, Rewrite] = {"Clip": clip, "Tile": tile}


def rewrite(model: onnx.ModelProto, shapes: Shapes) -> None:
    """Apply `REWRITES` to the standard operators of a model's main graph, in place."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes = []
    for node in graph.node:
        rule = REWRITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        result = rule(node, constants, shapes) if rule else None
        if result is None:
            nodes.append(node)
            continue
        nodes.extend(result[0])
        graph.initializer.extend(result[1])
    del graph.node[:]
    graph.node.extend(nodes)
