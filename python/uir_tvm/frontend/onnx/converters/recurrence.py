# SPDX-License-Identifier: Apache-2.0
"""One direction of a recurrent layer, which `recurrent` makes of the standard's operators."""

from __future__ import annotations

from typing import Any

from ...recurrence import Direction, Recurrence, layer
from .node import OnnxNode

#: The node's domain and operator; x, weights of the inputs, of the state, their biases, state, cell.
DOMAIN, OPERATOR = "uir", "Recurrence"


def recurrence(node: OnnxNode) -> list[Any]:
    """The rows, the last state and the last cell; without a cell the state again, which nothing reads."""
    x, *rest = node.inputs
    kind = Recurrence(node.attributes["cell"].decode(), bool(node.attributes["reverse"]))
    rows, state, cell = layer(node.builder, x, kind, Direction(*rest))
    return [rows, state, state if cell is None else cell]


RECURRENCE = {f"{DOMAIN}::{OPERATOR}": recurrence}
