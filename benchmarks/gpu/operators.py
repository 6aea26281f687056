# SPDX-License-Identifier: Apache-2.0
"""The fused operators."""

from __future__ import annotations

from typing import Any

from .case import Case, Input

MASKED = -1e9


def softmax(o: Any, x: Any) -> Any:
    return o.softmax(x)


def layernorm_residual(o: Any, x: Any, residual: Any, weight: Any, bias: Any) -> Any:
    """The sum goes on in the model, beside its normalisation."""
    total = x + residual
    return total, o.layer_norm(total, weight, bias)


def rmsnorm(o: Any, x: Any, weight: Any) -> Any:
    return o.rms_norm(x, weight)


def gelu_bias(o: Any, x: Any, bias: Any) -> Any:
    return o.gelu(x + bias)


def exp_abs_transpose(o: Any, x: Any) -> Any:
    return o.contiguous(o.permute(o.exp(o.abs(x)), (2, 1, 0)))


def masked_softmax(o: Any, scores: Any, mask: Any) -> Any:
    return o.softmax(o.where(mask, scores, MASKED))


def swiglu(o: Any, gate_up: Any) -> Any:
    half = gate_up.shape[-1] // 2
    return o.silu(gate_up[..., :half]) * gate_up[..., half:]


def rotary(o: Any, x: Any, cos: Any, sin: Any) -> Any:
    """x (batch, heads, length, size); the halves of a head turn against each other."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return o.cat([first * cos - second * sin, second * cos + first * sin], -1)


def log_softmax(o: Any, x: Any) -> Any:
    return o.log_softmax(x)


def groupnorm_silu(o: Any, x: Any, weight: Any, bias: Any) -> Any:
    return o.silu(o.group_norm(x, 32 if x.shape[1] >= 64 else 4, weight, bias))


def attention(o: Any, q: Any, k: Any, v: Any) -> Any:
    return o.attention(q, k, v)


def _vectors(size: int) -> tuple[Input, Input]:
    """Scale and offset of a normalisation."""
    return Input((size,), kind="ones", scale=0.1), Input((size,), scale=0.1)


def cases(small: bool) -> list[Case]:
    """All operators; small ones have shapes that the host model runs in seconds, with tails."""
    rows, width, vocabulary = (9, 72, 131) if small else (16384, 4096, 50257)
    ffn = 48 if small else 11008
    batch, heads, length, size = (1, 2, 24, 16) if small else (4, 16, 2048, 64)
    images, channels, side = (2, 8, 6) if small else (32, 320, 64)
    gelu = (2, 8, 64) if small else (6, 512, 4096)
    box = (4, 10, 18) if small else (20, 160, 170)
    scale, offset = _vectors(width)
    head = (batch, heads, length, size)
    return [
        Case("softmax", softmax, (Input((rows, width), "float32"),), streaming=True),
        Case(
            "layernorm_residual",
            layernorm_residual,
            (Input((rows, width)), Input((rows, width)), scale, offset),
            streaming=True,
        ),
        Case("rmsnorm", rmsnorm, (Input((rows, width)), scale), streaming=True),
        Case("gelu_bias", gelu_bias, (Input(gelu), Input(gelu[-1:]))),
        Case("exp_abs_transpose", exp_abs_transpose, (Input(box, "float32"),)),
        Case(
            "masked_softmax",
            masked_softmax,
            (Input((batch, heads, length, length)), Input((batch, 1, length, length), "bool", "mask")),
            streaming=True,
        ),
        Case("swiglu", swiglu, (Input((rows // 2, 2 * ffn)),), streaming=True),
        Case(
            "rotary",
            rotary,
            (
                Input((batch, 2 * heads, length, 2 * size)),
                Input((length, size), kind="angles", scale=10.0),
                Input((length, size), kind="angles", scale=10.0),
            ),
            streaming=True,
        ),
        Case("log_softmax", log_softmax, (Input((rows // 4 + 1, vocabulary), "float32"),), streaming=True),
        Case(
            "groupnorm_silu",
            groupnorm_silu,
            (Input((images, channels, side, side)), *_vectors(channels)),
            streaming=True,
        ),
        Case(
            "attention",
            attention,
            (Input(head), Input(head), Input(head)),
            flops=4.0 * batch * heads * length * length * size,
        ),
    ]
