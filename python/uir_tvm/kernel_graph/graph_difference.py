# SPDX-License-Identifier: Apache-2.0
"""What differs between two kernel graphs of one model: the smallest parts of them that stand alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..function_attributes import origin_of
from .nodes import KernelGraph, LibraryOp, Node, Tensor


@attrs.frozen
class Difference:
    """Parts of two graphs that compute the same tensors of the same ones, and how often there are such."""

    default: KernelGraph
    other: KernelGraph
    count: int


def difference(default: KernelGraph, other: KernelGraph) -> Difference | None:
    """The first part in which two graphs of one model differ; None where there is none that stands alone."""
    known = {_signature(node) for node in other.nodes}
    theirs_known = {_signature(node) for node in default.nodes}
    mine = [node for node in default.nodes if _signature(node) not in known]
    theirs = [node for node in other.nodes if _signature(node) not in theirs_known]
    clusters = _clusters([*mine, *theirs])
    for cluster in clusters:
        parts = [node for node in mine if id(node) in cluster], [n for n in theirs if id(n) in cluster]
        if all(parts):
            found = _alone(default, other, *parts)
            if found is not None:
                return Difference(*found, len(clusters))
    return None


def _signature(node: Node) -> tuple[Any, ...]:
    """What a node computes, and of which tensors; constants are told apart by their sizes alone."""
    code: Any = origin_of(node.prim_func) if not isinstance(node, LibraryOp) else node.attrs.to_json()
    read = tuple(t.name if t.constant is None else (t.shape, t.dtype) for t in node.inputs)
    return code, read, tuple(tensor.name for tensor in node.outputs)


def _clusters(nodes: Sequence[Node]) -> list[set[int]]:
    """Nodes, by identity, that hang together by what one of them writes and others read or write too."""
    written = {tensor.name for node in nodes for tensor in node.outputs}
    found: list[tuple[set[int], set[str]]] = []
    for node in nodes:
        names = {t.name for t in (*node.inputs, *node.outputs) if t.name in written}
        joined = [row for row in found if row[1] & names]
        found = [row for row in found if not row[1] & names]
        found.append(
            ({id(node)}.union(*(row[0] for row in joined)), names.union(*(row[1] for row in joined)))
        )
    order = {id(node): at for at, node in enumerate(nodes)}
    return sorted((row[0] for row in found), key=lambda cluster: min(order[one] for one in cluster))


def _alone(
    default: KernelGraph, other: KernelGraph, mine: Sequence[Node], theirs: Sequence[Node]
) -> tuple[KernelGraph, KernelGraph] | None:
    """Two graphs with the inputs and outputs that both parts have; None where one lacks what others read."""
    inside = set(map(id, mine))
    needed = {t.name for node in default.nodes if id(node) not in inside for t in node.inputs}
    needed |= {tensor.name for tensor, _ in default.outputs}
    results = [tensor.name for node in mine for tensor in node.outputs if tensor.name in needed]
    inputs: dict[str, Tensor] = {}
    for part in (mine, theirs):
        own = {tensor.name for node in part for tensor in node.outputs}
        for node in part:
            for tensor in node.inputs:
                if tensor.constant is None and tensor.name not in own:
                    inputs.setdefault(tensor.name, tensor)
    made = [_graph(part, inputs, results) for part in (mine, theirs)]
    return None if made[0] is None or made[1] is None else (made[0], made[1])


def _graph(nodes: Sequence[Node], inputs: Mapping[str, Tensor], results: Sequence[str]) -> KernelGraph | None:
    own = {tensor.name: tensor for node in nodes for tensor in node.outputs}
    read = {tensor.name: tensor for node in nodes for tensor in node.inputs}
    if not results or any(name not in own for name in results) or set(inputs) & set(own):
        return None
    given = tuple(read.get(name, tensor) for name, tensor in inputs.items())
    outputs = tuple((own[name], own[name].shape) for name in results)
    return KernelGraph(tuple(nodes), given, outputs, True, 0, 0)
