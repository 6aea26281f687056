# SPDX-License-Identifier: Apache-2.0
"""Control flow that is decided before the graph runs: branches folded, loops of known length unrolled."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper

from .function_bodies import renamed
from .known import VersionedNode, attributes_of

if TYPE_CHECKING:
    from .simplifier import Simplifier

#: Nodes that one loop may become.
UNROLLED_NODES = 20_000


def branch(step: VersionedNode, simplifier: Simplifier) -> bool:
    """If(constant) -> the nodes of its branch."""
    condition = simplifier.known.array(step.node.input[0])
    if condition is None:
        return False
    graph = attributes_of(step)["then_branch" if condition.reshape(-1)[0] else "else_branch"]
    assert isinstance(graph, onnx.GraphProto)
    results = inline(graph, [], step, simplifier)
    _identities(results, step.node.output, step, simplifier)
    return True


def loop(step: VersionedNode, simplifier: Simplifier) -> bool:
    """Loop -> its rounds one after the other; the graph runs up to where a condition is computed."""
    known, node = simplifier.known, step.node
    graph = attributes_of(step)["body"]
    assert isinstance(graph, onnx.GraphProto)
    counts = known.integers(node.input[0]) if node.input[0] else None
    start = known.array(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    conditional = len(node.input) > 1 and node.input[1]
    if (node.input[0] and counts is None) or (conditional and start is None):
        return False
    condition = True if start is None else bool(start.reshape(-1)[0])
    limit = counts[0] if counts is not None else UNROLLED_NODES
    # a loop with a condition may end long before its greatest number of rounds
    if not conditional and limit * len(graph.node) > UNROLLED_NODES:
        return False
    carried = list(node.input[2:])
    rows: list[list[str]] = [[] for _ in graph.output[1 + len(carried) :]]
    number = 0
    with simplifier.cuts.reading(lambda: [*carried, *itertools.chain(*rows)]):
        while condition and number < limit:
            values = (np.array(number, np.int64), np.array(condition))
            given = [*map(simplifier.constant, values), *carried]
            results = inline(graph, given, step, simplifier)
            carried = results[1 : 1 + len(carried)]
            for row, value in zip(rows, results[1 + len(carried) :], strict=True):
                row.append(value)
            number += 1
            if number * len(graph.node) > UNROLLED_NODES:
                need = f"a loop that ends within {UNROLLED_NODES} nodes"
                simplifier.refuse(step, f"goes on after {number} rounds", need)
            if number < limit:
                condition = bool(simplifier.know(step, results[0]).reshape(-1)[0])
    count = len(carried)
    _identities(carried, node.output[:count], step, simplifier)
    for row, name in zip(rows, node.output[count:], strict=False):
        if name:
            if not row:
                simplifier.refuse(step, "makes no round, and a scan output", "a loop of at least one round")
            stacked(row, 0, name, step, simplifier)
    return True


def scan(step: VersionedNode, simplifier: Simplifier) -> bool:
    """Scan -> its steps one after the other, each on a slice of the scanned inputs."""
    known, node = simplifier.known, step.node
    attributes = attributes_of(step)
    graph = attributes["body"]
    assert isinstance(graph, onnx.GraphProto)
    scanned = int(attributes["num_scan_inputs"])  # type: ignore[call-overload]
    if step.version < 9:
        return False
    states, inputs = list(node.input[:-scanned]), list(node.input[-scanned:])
    axes = list(attributes.get("scan_input_axes") or [0] * scanned)  # type: ignore[call-overload]
    back = list(attributes.get("scan_input_directions") or [0] * scanned)  # type: ignore[call-overload]
    outputs = len(graph.output) - len(states)
    out_axes = list(attributes.get("scan_output_axes") or [0] * outputs)  # type: ignore[call-overload]
    out_back = list(attributes.get("scan_output_directions") or [0] * outputs)  # type: ignore[call-overload]
    shape = known.shape(inputs[0])
    if shape is None or shape[axes[0]] * len(graph.node) > UNROLLED_NODES:
        return False
    length = shape[axes[0]]
    rows: list[list[str]] = [[] for _ in range(outputs)]
    with simplifier.cuts.reading(lambda: [*states, *inputs, *itertools.chain(*rows)]):
        for number in range(length):
            slices = []
            for name, axis, reverse in zip(inputs, axes, back, strict=True):
                place = simplifier.constant(np.array(length - 1 - number if reverse else number, np.int64))
                slices.append(simplifier.emit("Gather", [name, place], step, axis=axis))
            results = inline(graph, [*states, *slices], step, simplifier)
            states = results[: len(states)]
            for row, value in zip(rows, results[len(states) :], strict=True):
                row.append(value)
    _identities(states, node.output[: len(states)], step, simplifier)
    for row, name, axis, reverse in zip(rows, node.output[len(states) :], out_axes, out_back, strict=False):
        if name:
            stacked(row[::-1] if reverse else row, axis, name, step, simplifier)
    return True


def stacked(values: list[str], axis: int, name: str, step: VersionedNode, simplifier: Simplifier) -> None:
    """Values of one shape along a new axis."""
    axes = simplifier.constant(np.array([axis], np.int64))
    wide = [simplifier.emit("Unsqueeze", [value, axes], step, version=13) for value in values]
    simplifier.run(VersionedNode(helper.make_node("Concat", wide, [name], axis=axis), 13))


def inline(
    graph: onnx.GraphProto, inputs: list[str], step: VersionedNode, simplifier: Simplifier
) -> list[str]:
    """Run the nodes of a graph on named values in place of a node; the names of its results."""
    prefix = simplifier.prefix()
    names = dict(zip((value.name for value in graph.input), inputs, strict=True))
    for tensor in graph.initializer:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.name = names[tensor.name] = f"{prefix}{tensor.name}"
        simplifier.known.add_tensor(copy)
    made = [renamed(node, names, prefix) for node in graph.node]
    results = [names.get(value.name, value.name) for value in graph.output]
    simplifier.run_all([VersionedNode(node, simplifier.version(node.domain, step)) for node in made], results)
    return results


def _identities(values: list[str], outputs: list[str], step: VersionedNode, simplifier: Simplifier) -> None:
    for value, name in zip(values, outputs, strict=False):
        if name:
            simplifier.run(VersionedNode(helper.make_node("Identity", [value], [name]), 13))


#: Operators with bodies.
BRANCHES = {"If": branch, "Loop": loop, "Scan": scan}
