# SPDX-License-Identifier: Apache-2.0
"""Nearest resizes by whole factors: each element several times, or every so many of them."""

from __future__ import annotations

import math

import numpy as np
import tvm
from tvm import relax

from ...sizes.open_arithmetic import is_open
from ..relax_view import array_of, dtype_of, integers, is_constant, shape_of
from .rewriter import Rewriter

#: How TVM's resize places the elements of a result so that element j is that of place j / factor: which way
#: of placing, and which ways of rounding.
REPEATING = {
    "asymmetric": frozenset({"floor"}),
    "half_pixel": frozenset({"round", "round_prefer_floor", "round_prefer_ceil"}),
}


def repeated_elements(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """take by the constants 0, 0, 1, 1, 2, 2 -> reshape, broadcast_to, reshape.

    By the constants 1, 4, 7, 10 -> strided_slice.
    """
    source, indices = call.args
    shape = shape_of(source)
    if shape is None or call.attrs.axis is None or not is_constant(indices):
        return None
    axis, places = int(call.attrs.axis) % len(shape), array_of(indices)
    size = shape[axis]
    if is_open((size,)) or places.ndim != 1 or places.size < 2:
        return None
    if places.size % size == 0 and places.size > size:
        factor = places.size // size
        if np.array_equal(places, np.repeat(np.arange(size), factor)):
            return repeated(source, {axis: factor}, rewriter)
    first, step = int(places[0]), int(places[1]) - int(places[0])
    if step < 2 or first < 0 or places[-1] >= size or (np.diff(places) != step).any():
        return None
    end = int(places[-1]) + 1
    within = is_open(shape)
    return rewriter.emit(
        relax.op.strided_slice(source, [axis], [first], [end], [step], assume_inbound=within)
    )


def repeat(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """Each element of an axis, or of all, several times -> reshape, broadcast_to, reshape."""
    source, shape, target = call.args[0], shape_of(call.args[0]), shape_of(call)
    if shape is None or target is None or is_open(shape + target):
        return None
    times, axis = int(call.attrs.repeats), call.attrs.axis
    if axis is None:
        return repeated(rewriter.reshape(source, (math.prod(shape),)), {0: times}, rewriter)
    return repeated(source, {int(axis) % len(shape): times}, rewriter)


def repeated_pixels(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A nearest resize to whole multiples of the sizes -> reshape, broadcast_to, reshape."""
    source, attrs = call.args[0], call.attrs
    shape, target = shape_of(source), shape_of(call)
    if shape is None or target is None or str(attrs.method) != "nearest_neighbor":
        return None
    rounding = str(attrs.rounding_method)
    if rounding not in REPEATING.get(str(attrs.coordinate_transformation_mode), ()):
        return None
    if dtype_of(source) != dtype_of(call) or is_open(shape + target) or 0 in shape:
        return None
    if integers(call.args[1]) is None or any(new % old for old, new in zip(shape, target, strict=True)):
        return None
    factors = {k: new // old for k, (old, new) in enumerate(zip(shape, target, strict=True))}
    return repeated(source, factors, rewriter)


def repeated(source: tvm.ir.Expr, factors: dict[int, int], rewriter: Rewriter) -> tvm.ir.Expr:
    """Each element so many times along each axis, side by side."""
    shape = shape_of(source)
    assert shape is not None
    apart, wide, joined = [], [], []
    for axis, size in enumerate(shape):
        factor = factors.get(axis, 1)
        apart += [size] if factor == 1 else [size, 1]
        wide += [size] if factor == 1 else [size, factor]
        joined.append(size * factor)
    apart_wide = rewriter.broadcast(rewriter.reshape(source, tuple(apart)), tuple(wide))
    return rewriter.reshape(apart_wide, tuple(joined))
