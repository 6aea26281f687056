# SPDX-License-Identifier: Apache-2.0
"""A weight of few bits as a quantised tensor, which `microsoft` makes of MatMulNBits."""

from __future__ import annotations

from typing import Any

from ....quantized import Packing
from ....quantized_calls import dequantize_call
from .node import OnnxNode

#: The node's domain and operator; codes, scales and perhaps offsets.
DOMAIN, OPERATOR = "uir", "Dequantize"


def packed_weight(node: OnnxNode) -> list[Any]:
    """The tensor, in the dtype that the node says."""
    packing = Packing.from_json(node.attributes["packing"].decode())
    codes, scales, offsets = [*node.inputs, None][:3]
    dtype = node.attributes["dtype"].decode()
    return [dequantize_call(node.builder, packing, codes, scales, offsets, dtype)]


PACKED_WEIGHTS = {f"{DOMAIN}::{OPERATOR}": packed_weight}
