# SPDX-License-Identifier: Apache-2.0
"""The attributes of a recurrent layer's steps, and what they mean in NumPy."""

from __future__ import annotations

import json
from typing import Any

import attrs
import numpy as np

from ..sizes.open_arithmetic import structure
from .open_attrs import OpenAttrs, OperandLayout, not_below
from .reference import ACTIVATIONS, Array

#: Cell -> its gates.
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

_SIZE = not_below(0, "correct the shapes")


@attrs.frozen(kw_only=True)
class RecurrenceAttrs(OpenAttrs):
    """All steps of one direction: ``(inputs, weight, state, [cell or bias]) -> (rows, [cell])``.

    Parameters
    ----------
    cell : str
        A key of `GATES`; gates lie side by side as i, f, g, o (lstm) and r, z, n (gru).
    steps, batch : int
        Numbers or open sizes (`open_attrs`).
    hidden : int
    reverse : bool
        Whether the last step comes first.
    weight : OperandLayout
        [hidden, gates * hidden] in the tensor that holds it; with `packed`, in that which was packed.
    packed : bool
        The weight is the result of `cpu.pack_recurrence`.
    """

    cell: str
    steps: int = attrs.field(eq=structure, validator=_SIZE)
    batch: int = attrs.field(eq=structure, validator=_SIZE)
    hidden: int
    reverse: bool = False
    weight: OperandLayout
    packed: bool = False

    @classmethod
    def from_json(cls, text: str) -> RecurrenceAttrs:
        """The attributes that `to_json` wrote."""
        fields = json.loads(text)
        offset, strides = fields["weight"]
        return cls(**(fields | {"weight": OperandLayout(strides, offset)}))


def recurrence(
    attributes: RecurrenceAttrs, inputs: Array, weight: Array, state: Array, other: Array | None = None
) -> tuple[Array, Array | None]:
    """`uir.library.cpu.recurrence` in float64, with a weight [hidden, gates * hidden].

    Returns
    -------
    rows : numpy.ndarray
        [steps, batch, hidden].
    cell : numpy.ndarray or None
        An LSTM's, after the last step.
    """
    sigmoid = ACTIVATIONS["sigmoid"]
    count = GATES[attributes.cell]
    weight, state = weight.astype(np.float64), state.astype(np.float64)
    other = None if other is None else other.astype(np.float64)
    rows: list[Any] = [None] * attributes.steps
    order = range(attributes.steps)
    for time in reversed(order) if attributes.reverse else order:
        x, s = np.split(inputs[time].astype(np.float64), count, -1), np.split(state @ weight, count, -1)
        if attributes.cell == "lstm":
            i, f, g, o = (a + b for a, b in zip(x, s, strict=True))
            other = sigmoid(f) * other + sigmoid(i) * np.tanh(g)
            state = sigmoid(o) * np.tanh(other)
        elif attributes.cell == "gru":
            reset, update = sigmoid(x[0] + s[0]), sigmoid(x[1] + s[1])
            new = np.tanh(x[2] + reset * (s[2] + other))
            state = new + update * (state - new)
        else:
            state = ACTIVATIONS[attributes.cell.removeprefix("rnn_")](x[0] + s[0])
        rows[time] = state
    shape = (attributes.steps, attributes.batch, attributes.hidden)
    return np.array(rows, np.float64).reshape(shape), other if attributes.cell == "lstm" else None
