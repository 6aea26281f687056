# SPDX-License-Identifier: Apache-2.0
"""Positions in a state that are known before a call: they are checked before anything is written.

A row of ``ModelInfo.positions`` says of which state, how many rows it has, and how the index is computed of
the inputs, as `kernel_graph.known_positions` found it: ``{"input": 1}``, ``{"state": "count"}``,
``{"constant": [...]}``, or ``{"op": name, "operands": [...]}``, each with a ``view`` of it (extents and
strides, offset, shape) and a ``dtype``.
"""

from __future__ import annotations

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


def check_positions(
    rows: Sequence[Mapping[str, Any]], inputs: Sequence[Any], state: ModelState, name: str
) -> None:
    """Refuse positions beyond the state.

    Raises
    ------
    PositionError
        It names the state, the position and how many rows there are.
    """
    for row in rows:
        places = _value(row["index"], inputs, state)
        if places is None or not places.size:
            continue
        low, high, length = int(places.min()), int(places.max()), int(row["length"])
        if low < -length or high >= length:
            raise PositionError(
                f"Position {high if high >= length else low} lies beyond the state of `{name}`.",
                where=", ".join(row["states"]),
                need=f"positions below {length}",
                limit=f"{length} rows; nothing was written",
                remedy="reset(), begin a new sequence, or compile the model with a larger cache",
            )


def _value(given: Mapping[str, Any], inputs: Sequence[Any], state: ModelState) -> Any:
    """An index in numbers; None where they are not at hand."""
    if "input" in given:
        value = inputs[given["input"]]
        if is_torch(value):
            value = value.detach().numpy() if value.device.type == "cpu" else None
        elif not isinstance(value, np.ndarray):
            value = value.numpy() if value.device.type == "cpu" else None
    elif "state" in given:
        tensor = state.tensors[list(state.specs).index(given["state"])]
        value = np.from_dlpack(tensor) if tensor.device.type == "cpu" else None
    elif "constant" in given:
        value = np.asarray(given["constant"])
    else:
        operands = [_value(each, inputs, state) for each in given["operands"]]
        value = None if any(each is None for each in operands) else FUNCTIONS[given["op"]](*operands)
    if value is None:
        return None
    extents, strides, offset, shape = given["view"]
    flat = np.ascontiguousarray(value, given["dtype"]).reshape(-1)
    steps = [step * flat.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(flat[offset:], extents, steps).reshape(shape)
