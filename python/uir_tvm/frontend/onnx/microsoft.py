# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime (domain com.microsoft) in terms of the standard's."""

from __future__ import annotations

from .mat_mul_n_bits import mat_mul_n_bits
from .recurrent import recurrent
from .rewrites import Rewrite

DOMAIN = "com.microsoft"

RULES: dict[str, Rewrite] = {"DynamicQuantizeLSTM": recurrent, "MatMulNBits": mat_mul_n_bits}
