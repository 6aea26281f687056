# SPDX-License-Identifier: Apache-2.0
"""The kernel graph of a loaded executable: what was saved of it, to read but not to compile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


class SavedGraph:
    """A kernel graph without functions and constants.

    Nodes, tensors and reasons are plain dicts, as `KernelGraph.to_json` writes them.

    Parameters
    ----------
    text : str
        What `KernelGraph.to_json` returned.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._data: dict[str, Any] = json.loads(text)

    @property
    def nodes(self) -> Sequence[Mapping[str, Any]]:
        """Library and custom operators in an order in which they can run."""
        return tuple(self._data["nodes"])

    @property
    def library_ops(self) -> Sequence[Mapping[str, Any]]:
        """Nodes that call the library."""
        return tuple(node for node in self.nodes if node["type"] == "library")

    @property
    def custom_ops(self) -> Sequence[Mapping[str, Any]]:
        """Nodes that are kernels of our own."""
        return tuple(node for node in self.nodes if node["type"] == "custom")

    @property
    def tensors(self) -> Mapping[str, Mapping[str, Any]]:
        """Tensors by name."""
        return {tensor["name"]: tensor for tensor in self._data["tensors"]}

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the inputs."""
        return tuple(self._data["inputs"])

    @property
    def outputs(self) -> Sequence[Mapping[str, Any]]:
        """Tensor and shape of the results."""
        return tuple(self._data["outputs"])

    @property
    def why_not(self) -> Sequence[Mapping[str, str]]:
        """Neighbours that stayed two kernels, and the reason."""
        return tuple(self._data["why_not"])

    def summary(self) -> dict[str, Any]:
        """Counts and bytes, as `KernelGraph.summary`."""
        return dict(self._data["summary"])

    def to_json(self) -> str:
        """The text that it was made of."""
        return self._text
