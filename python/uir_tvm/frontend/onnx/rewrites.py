# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes in terms of others, where TVM's importer would answer with kernels instead of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper

from .known import Known, VersionedNode, of_sizes
from .recurrent import RECURRENT
from .windows import max_pool, padded

if TYPE_CHECKING:
    from .simplifier import Simplifier

#: Nodes in place of one, and constants by name.
Result = tuple[list[onnx.NodeProto], dict[str, np.ndarray]]


def clip(node: onnx.NodeProto, known: Known) -> Result | None:
    """Clip(x, low, high) -> Min(Max(x, low), high), without the bounds that are left out."""
    if len(node.input) < 2:
        return None  # the form before opset 11, with attributes
    bounds = [
        (operator, name) for operator, name in zip(("Max", "Min"), node.input[1:], strict=False) if name
    ]
    if not bounds:
        return [helper.make_node("Identity", [node.input[0]], list(node.output), name=node.name)], {}
    nodes, value = [], node.input[0]
    for index, (operator, bound) in enumerate(bounds):
        result = node.output[0] if index == len(bounds) - 1 else f"{node.output[0]}__{operator.lower()}"
        nodes.append(helper.make_node(operator, [value, bound], [result], name=f"{node.name}__{operator}"))
        value = result
    return nodes, {}


def tile(node: onnx.NodeProto, known: Known) -> Result | None:
    """Tile(x, n) -> Reshape to (1, a, 1, b, ..), Expand to (n, a, m, b, ..), Reshape to (n*a, m*b, ..)."""
    shape, counts = known.shape(node.input[0]), known.integers(node.input[1])
    if shape is None or counts is None:
        return None
    pairs = list(zip(counts, shape, strict=True))
    steps = {
        "split": [size for pair in pairs for size in (1, pair[1])],
        "repeat": [size for pair in pairs for size in pair],
        "merge": [count * size for count, size in pairs],
    }
    nodes, constants, value = [], {}, node.input[0]
    for step, target in steps.items():
        name = f"{node.output[0]}__{step}"
        constants[f"{name}_shape"] = of_sizes(target)
        result = node.output[0] if step == "merge" else name
        operator = "Expand" if step == "repeat" else "Reshape"
        nodes.append(
            helper.make_node(operator, [value, f"{name}_shape"], [result], name=f"{node.name}__{step}")
        )
        value = result
    return nodes, constants


def one_hot(node: onnx.NodeProto, known: Known) -> Result | None:
    """OneHot(i, n, (off, on)) -> Where(i == 0 .. n - 1 or i == -n .. -1, on, off), as the values' dtype."""
    shape, depth, values = (
        known.shape(node.input[0]),
        known.integers(node.input[1]),
        known.array(node.input[2]),
    )
    if shape is None or depth is None or values is None:
        return None
    axis = next((int(a.i) for a in node.attribute if a.name == "axis"), -1) % (len(shape) + 1)
    count, (off, on) = int(depth[0]), values
    along = [-1 if place == axis else 1 for place in range(len(shape) + 1)]
    numbers = np.arange(count, dtype=np.int64).reshape(along)
    name = node.output[0]
    arrays = {
        "shape": of_sizes([*shape[:axis], 1, *shape[axis:]]),
        "numbers": numbers,
        "negative": numbers - count,
        "on": np.asarray(on),
        "off": np.asarray(off),
    }
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Cast", [node.input[0]], "index", {"to": onnx.TensorProto.INT64}),
        ("Reshape", ["index", "shape"], "column", {}),
        ("Equal", ["column", "numbers"], "is", {}),
        ("Equal", ["column", "negative"], "was", {}),
        ("Or", ["is", "was"], "hit", {}),
        ("Where", ["hit", "on", "off"], "", {}),
    ]
    own = {*arrays, *(step[2] for step in steps)}
    nodes = [
        helper.make_node(
            operator,
            [f"{name}__{source}" if source in own else source for source in sources],
            [f"{name}__{result}" if result else name],
            name=f"{node.name}__{result or operator}",
            **attributes,
        )
        for operator, sources, result, attributes in steps
    ]
    return nodes, {f"{name}__{key}": array for key, array in arrays.items()}


def _plain(rule: Callable[[onnx.NodeProto, Known], Result | None]) -> Rewrite:
    """A rewrite of a rule that answers with nodes and constants in place of one node."""

    def apply(step: VersionedNode, simplifier: Simplifier) -> bool:
        result = rule(step.node, simplifier.known)
        if result is None:
            return False
        nodes, constants = result
        for name, array in constants.items():
            simplifier.known.add_array(name, array)
        for node in nodes:
            simplifier.run(VersionedNode(node, step.version))
        return True

    return apply


#: Whether a node was replaced.
Rewrite = Callable[["VersionedNode", "Simplifier"], bool]

REWRITES: dict[str, Rewrite] = {
    **dict.fromkeys(("AveragePool", "Conv", "LpPool"), _plain(padded)),
    "Clip": _plain(clip),
    "MaxPool": _plain(max_pool),
    "OneHot": _plain(one_hot),
    "Tile": _plain(tile),
    **RECURRENT,
}
