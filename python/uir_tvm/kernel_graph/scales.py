# SPDX-License-Identifier: Apache-2.0
"""Factors around a matrix product as the product's own."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from .activation_patterns import ends_activation
from .patterns import commuted, producer, reading_counts
from .program import Op, Program, View, compose


def fold_scales(program: Program, activations: Container[str] = ()) -> None:
    """(a * s) @ b, a @ (b * s), (a @ b) * s, (a @ b) / s -> the library's product with alpha = s or 1 / s.

    For one number s.  This moves a rounding (of s * a or of 1 / s) and changes results by an ulp or so.  A
    factor that float32 holds only as a denormal, zero or infinity stays where it is, and so does one that
    ends one of the ``activations`` (1 / 6 of a hard swish), which the product before it applies.
    """
    counts = reading_counts(program)
    for op in list(program.ops):
        if op.name != "library.matmul":
            continue
        for index, view in enumerate(op.operands):
            scale = view.base.producer
            if scale is None or scale.name not in ("multiply", "divide") or counts[view.base] != 1:
                continue
            found = None if ends_activation(scale, activations) else _scale_of(scale)
            if found is None:
                continue
            composed, alpha = compose(view, found[0]), op.attrs["alpha"] * found[1]
            if composed is not view and is_normal(alpha):
                op.operands[index] = composed
                op.attrs["alpha"] = alpha
    for scale in list(program.ops):
        if scale.name not in ("multiply", "divide"):
            continue
        found = _scale_of(scale)
        matmul = producer(found[0], "library.matmul") if found is not None else None
        if found is None or matmul is None or counts[matmul.result] != 1:
            continue
        if not is_normal(matmul.attrs["alpha"] * found[1]):
            continue
        matmul.attrs["alpha"] *= found[1]
        program.replace_value(scale.result, matmul.result.view())
    program.remove_dead()


def scale_weights(program: Program) -> None:
    """alpha (a @ w) -> a @ (alpha w) for constants w that nothing else reads.

    What a library does with a factor of its own costs time at every call. Constants of other types than
    float32, and factors that could bring theirs near the ends of its range, stay apart.
    """
    counts = reading_counts(program)
    for op in program.ops:
        if op.name != "library.matmul" or op.attrs["alpha"] == 1.0 or not 1e-6 < abs(op.attrs["alpha"]) < 1e6:
            continue
        weight = op.operands[1]
        if weight.base.constant is None or weight.base.dtype != "float32" or counts[weight.base] != 1:
            continue
        scaled = (weight.base.array * op.attrs["alpha"]).astype("float32")
        op.operands[1] = View(program.constant(scaled, weight.base.name), weight.layout)
        op.attrs["alpha"] = 1.0


def _scale_of(op: Op) -> tuple[View, float] | None:
    """Tensor and number of a product with, or a quotient by, one finite number."""
    if not op.result.dtype.startswith("float"):
        return None
    pairs = commuted(op) if op.name == "multiply" else iter([(op.operands[0], op.operands[1])])
    for tensor, number in pairs:
        factor = number.scalar
        if factor is not None and is_normal(float(factor)):
            return tensor, float(factor) if op.name == "multiply" else 1.0 / float(factor)
    return None


def is_normal(factor: float) -> bool:
    """Whether float32, in which libraries take the factor, holds a number with all of its digits."""
    limits = np.finfo(np.float32)
    return bool(limits.tiny <= abs(factor) <= limits.max)
