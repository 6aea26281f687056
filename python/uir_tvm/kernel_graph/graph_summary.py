# SPDX-License-Identifier: Apache-2.0
"""A kernel graph in figures, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from attrs import asdict

from .nodes import CustomOp, FoundOp, KernelGraph, OpaqueOp, SpecializedOp, Tensor


def summarise(graph: KernelGraph) -> dict[str, Any]:
    """Counts and DRAM traffic.

    Returns
    -------
    dict
        ``operators`` (of the model), ``nodes``, ``library``, ``custom``, ``kernels`` (distinct custom
        functions), ``heroes`` (custom operators by hero), ``bytes_before`` (every operator a kernel of its
        own, views free), ``bytes_after``, ``constant_bytes``, ``fallbacks``, ``opaque`` (operators that
        PyTorch computes: ``operator``, ``reason``, ``count``), ``found`` (sizes that data decide).
    """
    constants = {t: t.bytes for node in graph.nodes for t in node.inputs if t.constant is not None}
    return {
        "operators": graph.op_count,
        "nodes": len(graph.nodes),
        "library": len(graph.library_ops),
        "custom": len(graph.custom_ops),
        "kernels": len(graph.kernels),
        "heroes": dict(Counter(node.hero for node in graph.custom_ops)),
        "bytes_before": graph.unfused_bytes,
        "bytes_after": graph.fused_bytes,
        "constant_bytes": sum(constants.values()),
        "fallbacks": list(graph.fallbacks),
        "by_sizes": len(graph.specialized_ops),
        "found": [name for node in graph.opaque_ops if isinstance(node, FoundOp) for name in node.found],
        "opaque": _opaque(graph),
    }


def _opaque(graph: KernelGraph) -> list[dict[str, Any]]:
    """The operators that PyTorch computes, each once for every reason."""
    counts = Counter((node.ops[0], node.reason) for node in graph.opaque_ops)
    return [{"operator": name, "reason": why, "count": count} for (name, why), count in counts.items()]


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "bytes": tensor.bytes,
        "constant": tensor.constant is not None,
    }


def graph_json(graph: KernelGraph) -> str:
    """Nodes, tensors, reasons and summary as JSON; constants without their contents, functions by name."""
    tensors: dict[str, Tensor] = {}
    nodes = []
    for node in graph.nodes:
        for tensor in (*node.inputs, *node.outputs):
            tensors[tensor.name] = tensor
        entry: dict[str, Any] = {
            "ops": list(node.ops),
            "inputs": [tensor.name for tensor in node.inputs],
            "outputs": [tensor.name for tensor in node.outputs],
            "bytes_read": node.bytes_read,
        }
        if isinstance(node, CustomOp):
            entry |= {"type": "custom", "kernel": node.name, "hero": node.hero}
        elif isinstance(node, OpaqueOp):
            entry |= {"type": "opaque", "kind": node.ops[0], "reason": node.reason}
        elif isinstance(node, SpecializedOp):
            entry |= {"type": "by sizes", "hero": node.hero, "reason": node.reason}
        else:
            entry |= {"type": "library", "kind": node.kind, "attrs": json.loads(node.attrs.to_json())}
        nodes.append(entry)
    for tensor in graph.inputs:
        tensors[tensor.name] = tensor
    return json.dumps(
        {
            "summary": summarise(graph),
            "inputs": [tensor.name for tensor in graph.inputs],
            "outputs": [{"tensor": tensor.name, "shape": list(shape)} for tensor, shape in graph.outputs],
            "tensors": [_tensor(tensor) for tensor in tensors.values()],
            "nodes": nodes,
            "why_not": [asdict(entry) for entry in graph.why_not],
            "attentions": [asdict(entry) for entry in graph.attentions],
            "integers": [asdict(entry) for entry in graph.integers],
            "fusion": [asdict(entry) for entry in graph.fusion],
        },
        default=str,  # sizes that are open
    )
