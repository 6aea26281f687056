# SPDX-License-Identifier: Apache-2.0
"""Samples of distributions by Relax's other operators; TVM's own kernel is for one device and any size."""

from __future__ import annotations

import tvm
from tvm import relax

from ..relax_view import shape_of
from .rewriter import Rewriter


def multinomial_from_uniform(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """The first class at which the running sum of a row of probabilities exceeds the uniform sample.

    Running sums rise, so that class is as many as the sums that do not exceed the sample; at most the last,
    where rounding keeps the whole sum below the sample.
    """
    probabilities, sample, rows = call.args
    shape, drawn = shape_of(probabilities), shape_of(rows)
    if shape is None or drawn is None:
        return None
    dtype = str(call.ty.dtype)
    op = relax.op
    sums = rewriter.emit(op.cumsum(probabilities, axis=1, dtype=str(probabilities.ty.dtype)))
    chosen = rewriter.emit(op.take(sums, rewriter.reshape(rows, drawn[:1]), axis=0))
    below = rewriter.emit(op.less_equal(chosen, sample))
    count = rewriter.emit(op.sum(rewriter.emit(op.astype(below, dtype)), axis=1, keepdims=True))
    return rewriter.emit(op.minimum(count, relax.const(shape[1] - 1, dtype)))
