# SPDX-License-Identifier: Apache-2.0
"""Neighbours in the kernel graph that stayed two kernels: why, and what one kernel would have saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..errors import ArtifactError


@attrs.frozen
class Border:
    """Pairs of kernels with one reason: the same two functions may meet many times in a model.

    Attributes
    ----------
    producer, consumer : str
        Kernels by name, library operators by kind.
    times : int
        Pairs of this kind.
    tensors : tuple of str
        What the first of these pairs passes: ``name (shape) dtype`` each.
    saved_bytes : int
        DRAM traffic that fusing all of them would save.
    reason : str
    """

    producer: str
    consumer: str
    times: int
    tensors: tuple[str, ...]
    saved_bytes: int
    reason: str


def node_name(node: Mapping[str, Any]) -> str:
    """A node of the graph's JSON as reports name it."""
    if node["type"] == "custom":
        return str(node["kernel"])
    return f"{'PyTorch' if node['type'] == 'opaque' else 'library'} {node['kind']}"


def borders(graph: Mapping[str, Any]) -> tuple[Border, ...]:
    """The borders of a kernel graph, costliest first.

    Parameters
    ----------
    graph : mapping
        What `KernelGraph.to_json` says.

    Raises
    ------
    ArtifactError
        The graph was saved by a version that did not keep what a border costs.
    """
    if any("saved_bytes" not in entry for entry in graph["why_not"]):
        raise ArtifactError(
            "The file does not say which kernels its reasons are about.",
            need="a kernel graph with nodes and bytes beside every reason",
            limit="it was saved before these were kept",
            remedy="compile the model again: uir compile MODEL -o FILE",
        )
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    found: dict[tuple[str, str, str], Border] = {}
    for entry in graph["why_not"]:
        producer = node_name(graph["nodes"][entry["producer_node"]])
        consumer = node_name(graph["nodes"][entry["consumer_node"]])
        key = (producer, consumer, entry["reason"])
        known = found.get(key)
        if known is None:
            passed = tuple(_tensor(tensors[name]) for name in entry["tensors"])
            found[key] = Border(*key[:2], 1, passed, entry["saved_bytes"], entry["reason"])
        else:
            saved = known.saved_bytes + entry["saved_bytes"]
            found[key] = attrs.evolve(known, times=known.times + 1, saved_bytes=saved)
    return tuple(sorted(found.values(), key=lambda border: -border.saved_bytes))


def _tensor(tensor: Mapping[str, Any]) -> str:
    return f"{tensor['name']} ({', '.join(map(str, tensor['shape']))}) {tensor['dtype']}"
