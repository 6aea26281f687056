# SPDX-License-Identifier: Apache-2.0
"""A weight of few bits as a quantised tensor, which `microsoft` makes of MatMulNBits."""

from __future__ import annotations

from typing import Any

from ....quantized import Packing, dequantize_call
from .node import OnnxNode

#: The node's domain and operator; codes, scales and perhaps offsets.
DOMAIN, OPERATOR = "uir", "Dequantize"


def packed_weight(node: OnnxNode) -> list[Any]:
    """The tensor, in the dtype that the node says."""
    packing = Packing.from_json(node.attributes["packing"].decode())
    parts = [*node.inputs, None][:3]
    return [dequantize_call(node.builder, packing, *parts, dtype=node.attributes["dtype"].decode())]


PACKED_WEIGHTS = {f"{DOMAIN}::{OPERATOR}": packed_weight}
