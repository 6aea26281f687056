# SPDX-License-Identifier: Apache-2.0
"""Positions in a state that are known before a call: they are checked before anything is written.

A row of ``ModelInfo.positions`` says of which state, how many rows it has, and how the index is computed of
the inputs, as `kernel_graph.known_positions` found it: ``{"input": 1}``, ``{"state": "count"}``,
``{"constant": [...]}``, or ``{"op": name, "operands": [...]}``, each with a ``view`` of it (extents and
strides, offset, shape), a ``dtype`` and the ``size`` of what is viewed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import PositionError
from .executable_state import ModelState
from .tensors import is_torch

#: Operator of the kernel graph -> what it computes.
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "less": np.less,
    "where": np.where,
    "astype": lambda value: value,
    "copy": lambda value: value,
}

#: Inputs and state -> an index in numbers; None where they are not at hand.
Index = Callable[[Sequence[Any], ModelState], Any]


class PositionChecks:
    """What is checked of one model's calls.

    Parameters
    ----------
    rows : sequence of mapping
        ``ModelInfo.positions``.
    name : str
        The model's.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], name: str) -> None:
        self._name = name
        self._rows = [(_index(row["index"]), int(row["length"]), row["states"]) for row in rows]

    def check(self, inputs: Sequence[Any], state: ModelState) -> None:
        """Refuse positions beyond the state.

        Raises
        ------
        PositionError
            It names the state, the position and how many rows there are.
        """
        for index, length, states in self._rows:
            places = index(inputs, state)
            if places is None or not places.size:
                continue
            one = places.size == 1
            low, high = (places.item(),) * 2 if one else (int(places.min()), int(places.max()))
            if low < -length or high >= length:
                raise PositionError(
                    f"Position {high if high >= length else low} lies beyond the state of `{self._name}`.",
                    where=", ".join(states),
                    need=f"positions below {length}",
                    limit=f"{length} rows; nothing was written",
                    remedy="reset(), begin a new sequence, or compile the model with a larger cache",
                )


def _index(given: Mapping[str, Any]) -> Index:
    """How an index is computed, its views included."""
    source = _source(given)
    extents, strides, offset, shape = given["view"]
    dtype = np.dtype(given["dtype"])
    steps = [step * dtype.itemsize for step in strides]
    whole = math.prod(shape) == given["size"] and not offset and _run(extents, strides)

    def viewed(inputs: Sequence[Any], state: ModelState) -> Any:
        value = source(inputs, state)
        if value is None:
            return None
        flat = np.ascontiguousarray(value, dtype).reshape(-1)
        if whole:
            return flat.reshape(shape)
        return np.lib.stride_tricks.as_strided(flat[offset:], extents, steps).reshape(shape)

    return viewed


def _run(extents: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements are all of a tensor in its order."""
    step = 1
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if stride != step:
            return False
        step *= extent
    return True


def _source(given: Mapping[str, Any]) -> Index:
    """What is viewed."""
    if "input" in given:
        place = given["input"]
        return lambda inputs, state: _on_host(inputs[place])
    if "state" in given:
        name = given["state"]
        return lambda inputs, state: _on_host(state.tensors[list(state.specs).index(name)])
    if "constant" in given:
        value = np.asarray(given["constant"])
        return lambda inputs, state: value
    function, operands = FUNCTIONS[given["op"]], [_index(each) for each in given["operands"]]

    def computed(inputs: Sequence[Any], state: ModelState) -> Any:
        values = [each(inputs, state) for each in operands]
        return None if any(value is None for value in values) else function(*values)

    return computed


def _on_host(value: Any) -> Any:
    """A tensor's numbers where it lies in the host's memory."""
    if isinstance(value, np.ndarray):
        return value
    if value.device.type != "cpu":
        return None
    return value.detach().numpy() if is_torch(value) else value.numpy()
