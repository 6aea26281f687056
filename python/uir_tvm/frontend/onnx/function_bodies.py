# SPDX-License-Identifier: Apache-2.0
"""Operators that the standard defines by other operators, expanded by the standard's own bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import helper

from .known import Known, VersionedNode

#: Functions of the standard that have converters of their own, which make fewer or faster operators.
NATIVE = frozenset(
    """
    AffineGrid Bernoulli CastLike Clip DynamicQuantizeLinear Elu Gelu GreaterOrEqual
    GroupNormalization HardSigmoid
    HardSwish LayerNormalization LeakyRelu LessOrEqual LogSoftmax Mish PRelu Range
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare Relu RMSNormalization Selu Shrink
    Softmax Softplus Softsign ThresholdedRelu
    """.split()
)


def body_of(step: VersionedNode, known: Known) -> onnx.FunctionProto | None:
    """The standard's definition of a node by other operators, for its inputs' types; None without one."""
    schema: Any = step.schema  # the package's stubs lack its functions
    if schema is None or (step.operator in NATIVE and _is_native(step)):
        return None
    text = b""
    if schema.has_function and step.version in _versions(schema.function_opset_versions, step.version):
        text = schema.get_function_with_opset_version(step.version)
    elif schema.has_context_dependent_function:
        types = [
            known.types.get(name, onnx.TypeProto()).SerializeToString() if name else b""
            for name in step.node.input
        ]
        if any(name and name not in known.types for name in step.node.input):
            return None
        text = schema.get_context_dependent_function_with_opset_version(
            step.version, step.node.SerializeToString(), types
        )
    return onnx.FunctionProto.FromString(text) if text else None


def _is_native(step: VersionedNode) -> bool:
    """Whether the converter makes all outputs: of normalisations, the first alone."""
    return sum(map(bool, step.node.output)) == 1 or step.operator == "DynamicQuantizeLinear"


def _versions(known: list[int], version: int) -> list[int]:
    """The version, if a body is written for it or an earlier one."""
    return [version] if any(number <= version for number in known) else []


def expand(
    step: VersionedNode, body: onnx.FunctionProto, prefix: str, opsets: Mapping[str, int]
) -> list[VersionedNode]:
    """The nodes of a function's body in place of a node that calls it.

    Parameters
    ----------
    step : VersionedNode
        The node.
    body : onnx.FunctionProto
        The function, of the standard or the model's own.
    prefix : str
        Begins the names of values inside; no other value's name begins so.
    opsets : mapping of str to int
        The versions of operators by domain, where the body names none.
    """
    node = step.node
    inputs = [*node.input, *[""] * (len(body.input) - len(node.input))]
    outputs = [*node.output, *[""] * (len(body.output) - len(node.output))]
    names = dict(zip(body.input, inputs, strict=False))
    # An output that the caller leaves out is still computed inside.
    for inner, outer in zip(body.output, outputs, strict=False):
        if outer and inner not in body.input:
            names[inner] = outer
    attributes = {a.name: a for a in body.attribute_proto}
    schema = step.schema
    for name, attribute in (schema.attributes if schema else {}).items():
        if attribute.default_value.name:
            attributes.setdefault(name, attribute.default_value)
    attributes.update({a.name: a for a in node.attribute})
    versions = {**opsets, **{opset.domain: opset.version for opset in body.opset_import}}
    steps = []
    for inner in body.node:
        copy = renamed(inner, names, prefix, attributes)
        domain = "" if copy.domain == "ai.onnx" else copy.domain
        steps.append(VersionedNode(copy, versions.get(domain, step.version)))
    for inner_name, outer in zip(body.output, outputs, strict=False):
        if outer and names.get(inner_name) != outer:  # an output that is an input
            steps.append(
                VersionedNode(helper.make_node("Identity", [names[inner_name]], [outer]), step.version)
            )
    return steps


def renamed(
    node: onnx.NodeProto,
    names: dict[str, str],
    prefix: str,
    attributes: Mapping[str, onnx.AttributeProto] | None = None,
) -> onnx.NodeProto:
    """A copy of a node with other names of values, and the values of referenced attributes.

    Parameters
    ----------
    node : onnx.NodeProto
    names : dict of str to str
        Inner name -> outer name; it takes up the names that the node gives. Names that no node gave are those
        of an outer graph, and stay.
    prefix : str
        Begins the names of values that the node gives.
    attributes : mapping, optional
        What attributes of the node may refer to; None where they refer to nothing.
    """
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    if node.name:
        copy.name = f"{prefix}{node.name}"
    copy.input[:] = [names.get(name, name) if name else "" for name in node.input]
    del copy.attribute[:]
    for attribute in node.attribute:
        made = _attribute(attribute, names, prefix, attributes)
        if made is not None:
            copy.attribute.append(made)
    copy.output[:] = [names.setdefault(name, f"{prefix}{name}") if name else "" for name in node.output]
    return copy


def _attribute(
    attribute: onnx.AttributeProto,
    names: Mapping[str, str],
    prefix: str,
    attributes: Mapping[str, onnx.AttributeProto] | None,
) -> onnx.AttributeProto | None:
    """An attribute with its reference resolved; None where it refers to one that is not given."""
    copy = onnx.AttributeProto()
    if attribute.ref_attr_name and attributes is not None:
        if attribute.ref_attr_name not in attributes:
            return None
        copy.CopyFrom(attributes[attribute.ref_attr_name])
        copy.name = attribute.name
        return copy
    copy.CopyFrom(attribute)
    if attribute.type == onnx.AttributeProto.GRAPH:
        inside = dict(names)
        own = {value.name for value in attribute.g.input} | {t.name for t in attribute.g.initializer}
        for name in own:
            inside.pop(name, None)
        nodes = [renamed(node, inside, prefix, attributes) for node in attribute.g.node]
        del copy.g.node[:]
        copy.g.node.extend(nodes)
        for value in copy.g.output:
            value.name = inside.get(value.name, value.name)
    return copy
