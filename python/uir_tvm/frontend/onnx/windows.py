# SPDX-License-Identifier: Apache-2.0
"""ONNX operators with windows: padding in numbers, and the places of the largest elements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ...sizes.open_size import OpenSize
from .known import Known, VersionedNode

#: Nodes in place of one, and constants by name.
Result = tuple[list[onnx.NodeProto], dict[str, np.ndarray]]


def padded(node: onnx.NodeProto, known: Known) -> Result | None:
    """``auto_pad`` of a convolution or pool -> ``pads``; None where there is none, or shapes are open."""
    attributes = _attributes(node)
    mode = attributes.pop("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        return None
    window = _window(node, attributes, known)
    if window is None:
        return None
    sizes, kernel, strides, dilations = window
    pairs = [(0, 0)] * len(sizes)
    if mode != "VALID":
        totals = [
            max((-(-size // stride) - 1) * stride + (extent - 1) * dilation + 1 - size, 0)
            for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
        ]
        pairs = [(total // 2, total - total // 2) for total in totals]
    if mode == "SAME_LOWER":
        pairs = [(end, begin) for begin, end in pairs]
    attributes["pads"] = [begin for begin, _ in pairs] + [end for _, end in pairs]
    attributes.pop("ceil_mode", None)  # the size is that of the padding
    made = helper.make_node(
        node.op_type, node.input, node.output, node.name, domain=node.domain, **attributes
    )
    return [made], {}


def max_pool(node: onnx.NodeProto, known: Known) -> Result | None:
    """A max pool that also says where its elements are -> one that does not, and their places."""
    explicit = padded(node, known)
    node = explicit[0][0] if explicit else node
    if len(node.output) < 2 or not node.output[1]:
        return explicit
    attributes, shape = _attributes(node), known.shape(node.input[0])
    window = _window(node, attributes, known)
    if shape is None or window is None:
        return explicit
    places, out = _places(window, attributes)
    plane, count, size = int(np.prod(shape[2:])), places.shape[0], places.shape[1]
    names = _Names(node)
    numbers = np.arange(plane)
    given = numbers.reshape(shape[:1:-1]).T.ravel() if attributes.get("storage_order", 0) else numbers
    planes = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(*shape[:2], 1) * plane
    flat, windows = names.constant([*shape[:2], plane]), names.constant([*shape[:2], count, size])
    result = names.constant([*shape[:2], *out])
    rows = names.constant(np.arange(count, dtype=np.int64) * size)
    attributes.pop("storage_order", None)
    nodes = [
        helper.make_node("MaxPool", node.input, node.output[:1], node.name, **attributes),
        names.node("Reshape", [node.input[0], flat], "flat"),
        names.node("Gather", ["flat", names.constant(places.ravel())], "gathered", axis=2),
        names.node("Reshape", ["gathered", windows], "windows"),
        names.node("ArgMax", ["windows"], "nth", axis=3, keepdims=0),
        names.node("Add", ["nth", rows], "cell"),
        names.node("Gather", [names.constant(given[places].ravel()), "cell"], "inside", axis=0),
        names.node("Add", ["inside", names.constant(planes)], "place"),
        names.node("Reshape", ["place", result], node.output[1]),
    ]
    return nodes, names.constants


class _Names:
    """Nodes and constants with names of their own."""

    def __init__(self, node: onnx.NodeProto) -> None:
        self.node_name, self.outputs = node.name, set(node.output)
        self.prefix = node.output[0]
        self.constants: dict[str, np.ndarray] = {}
        self.made: set[str] = set()

    def constant(self, numbers: Any) -> str:
        name = f"{self.prefix}__number{len(self.constants)}"
        self.constants[name] = np.asarray(numbers, np.int64)
        return name

    def node(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
        names = [f"{self.prefix}__{name}" if name in self.made else name for name in inputs]
        if output not in self.outputs:
            self.made.add(output)
            output = f"{self.prefix}__{output}"
        return helper.make_node(operator, names, [output], f"{self.node_name}__{operator}", **attributes)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _window(
    node: onnx.NodeProto, attributes: Mapping[str, Any], known: Known
) -> tuple[list[int], list[int], list[int], list[int]] | None:
    """Sizes, kernel, strides and dilations along the axes of space."""
    shape = known.shape(node.input[0])
    weight = known.shape(node.input[1]) if len(node.input) > 1 else None
    kernel = attributes.get("kernel_shape") or (None if weight is None else weight[2:])
    if shape is None or kernel is None:
        return None
    ones = [1] * (len(shape) - 2)
    strides, dilations = attributes.get("strides") or ones, attributes.get("dilations") or ones
    return list(shape[2:]), list(kernel), list(strides), list(dilations)


def told_pool(step: VersionedNode, known: Known) -> None:
    """Correct the inferred shape of a pool with ``ceil_mode``, where all sizes are known.

    ONNX's inference counts windows that begin in the padding behind; its standard leaves them out.
    """
    node = step.node
    attributes, shape = _attributes(node), known.shape(node.input[0])
    window = _window(node, attributes, known)
    if shape is None or window is None or not attributes.get("ceil_mode", 0):
        return
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET" or any(isinstance(s, OpenSize) for s in shape):
        return
    for name in filter(None, node.output):
        known.add_type(name, known.element(name), [*shape[:2], *_counts(window, attributes)])


def _counts(
    window: tuple[list[int], list[int], list[int], list[int]], attributes: Mapping[str, Any]
) -> list[int]:
    """How many windows there are along each axis."""
    rank = len(window[0])
    pads = attributes.get("pads") or [0] * (2 * rank)
    ceil, out = bool(attributes.get("ceil_mode", 0)), []
    for axis, (size, extent, stride, dilation) in enumerate(zip(*window, strict=True)):
        free = size + pads[axis] + pads[rank + axis] - (extent - 1) * dilation - 1
        count = (-(-free // stride) if ceil else free // stride) + 1
        if ceil and (count - 1) * stride >= size + pads[axis]:
            count -= 1  # it would begin in the padding behind
        out.append(count)
    return out


def _places(
    window: tuple[list[int], list[int], list[int], list[int]], attributes: Mapping[str, Any]
) -> tuple[np.ndarray, list[int]]:
    """Which elements of a plane every window holds, (windows, elements), and the shape of the windows.

    In the place of an element of the padding stands the window's first other one, which changes neither the
    maximum nor the first place where it is.
    """
    sizes, kernel, strides, dilations = window
    rank, out = len(sizes), _counts(window, attributes)
    pads = attributes.get("pads") or [0] * (2 * rank)
    rows = []
    for start in itertools.product(*map(range, out)):
        cells = itertools.product(*map(range, kernel))
        at = np.array(start) * strides - pads[:rank] + np.array(list(cells)) * dilations
        valid = ((at >= 0) & (at < sizes)).all(1)
        numbers = np.ravel_multi_index(tuple(np.where(valid[:, None], at, 0).T), sizes)
        rows.append(np.where(valid, numbers, numbers[valid.argmax()]))
    return np.array(rows, np.int64), out


#: What corrects the shapes that ONNX infers of an operator.
CORRECTED = dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), told_pool)
