# SPDX-License-Identifier: Apache-2.0
"""Nodes of constants, evaluated by ONNX's reference implementation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from ..fold import GROWTH_LIMIT
from .known import Known, VersionedNode, attributes_of, of_sizes

#: Their results are not a function of their inputs.
RANDOM = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli".split()
)
#: What integers are of no elements where floats are no number: NumPy makes their least number of that.
OF_NOTHING = {"ReduceMean": 0}


def evaluate(step: VersionedNode, known: Known) -> dict[str, np.ndarray] | None:
    """Outputs of a node that are constant, by name; None where they are not, or are not worth their bytes."""
    node = step.node
    if node.op_type in ("Shape", "Size") and known.shape(node.input[0]) is not None:
        shape = known.shape(node.input[0]) or ()
        if node.op_type == "Size":
            return {node.output[0]: of_sizes(np.array(math.prod(shape), object))}
        bounds: Any = attributes_of(step)
        return {node.output[0]: of_sizes(shape[bounds.get("start", 0) : bounds.get("end", len(shape))])}
    if node.op_type in RANDOM or any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
        return None
    names = [name for name in node.input if name]
    if any(not known.is_constant(name) for name in names):
        return None
    if node.op_type != "Constant" and not _pays(node, names, known):
        return None
    arrays = {name: array for name in names if (array := known.array(name)) is not None}
    values = by_reference(step, arrays)
    if values is None or any(not isinstance(value, np.ndarray | np.generic) for value in values):
        return None
    found = zip((name for name in node.output if name), values, strict=False)
    return {name: np.asarray(value) for name, value in found}


def _pays(node: onnx.NodeProto, names: list[str], known: Known) -> bool:
    """Whether the results are small, or no larger than what they replace."""
    made = sum(8 * (known.size(name) or 0) for name in node.output if name)
    return made <= max(GROWTH_LIMIT, sum(8 * (known.size(name) or 0) for name in names))


def by_reference(step: VersionedNode, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
    """One node by ONNX's reference implementation; None where that has no such operator, or refuses."""
    try:
        with np.errstate(all="ignore"):
            values = list(_evaluator(step).run(None, dict(feeds)))
    except Exception:  # it raises what NumPy raises, and more; the conversion of the node says what is wrong
        return None
    number = OF_NOTHING.get(step.node.op_type)
    if number is not None and not feeds[step.node.input[0]].size:
        return [np.full_like(v, number) if np.asarray(v).dtype.kind in "iu" else v for v in values]
    return values


def has_reference(step: VersionedNode) -> bool:
    """Whether ONNX's reference implementation has an operator, and computes it from its operands alone."""
    node = step.node
    if node.op_type in RANDOM or any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
        return False
    try:
        _evaluator(step)
    except Exception:  # it names no type: each operator's package raises its own
        return False
    return True


def _evaluator(step: VersionedNode) -> ReferenceEvaluator:
    node = step.node
    inputs, outputs = (
        [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name]
        for names in (node.input, node.output)
    )
    graph = helper.make_graph([node], "node", inputs, outputs)
    return ReferenceEvaluator(
        helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, step.version)])
    )
