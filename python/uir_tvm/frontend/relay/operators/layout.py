# SPDX-License-Identifier: Apache-2.0
"""Layouts, blocks of space, windows and masks."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
from tvm import relax, topi

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value
from .shapes import concatenate, cut, slices


def _axes(layout: str) -> list[tuple[str, int]]:
    """A layout's axes: the letter, and the block's size for one that is part of another (NCHW4c)."""
    return [(letter, int(size or 0)) for size, letter in re.findall(r"(\d*)([A-Za-z])", layout)]


def relayout(c: ConversionContext, x: Value, source: str, target: str) -> Value:
    """A tensor in another layout, of whole axes (upper case) and blocks of them (lower case)."""
    have, want = _axes(source), _axes(target)
    whole = {letter.upper() for letter, _ in have}
    if whole != {letter.upper() for letter, _ in want} or len(have) != c.ndim(x):
        raise c.refuse(f"cannot go from layout {source} to {target}", "layouts of the same axes")
    if source == target:
        return x
    # every axis as (letter, outer part first), all blocks apart
    shape, names = [], []
    blocks = {letter: size for letter, size in want if size}
    inner = {letter.upper() for letter, size in have if size}
    for (letter, _), size in zip(have, c.shape(x), strict=True):
        block = blocks.get(letter.lower(), 0)
        if letter.isupper() and block and letter not in inner:
            if size % block:
                raise c.refuse(f"cannot cut {size} into blocks of {block}", "a size that the block divides")
            shape += [size // block, block]
            names += [letter, letter.lower()]
        else:
            shape.append(size)
            names.append(letter)
    x = c.reshape(x, shape)
    wanted = [letter for letter, _ in want]
    order: list[int] = []
    final: list[int] = []
    for letter in wanted:
        parts = [names.index(letter)]
        if letter.isupper() and letter.lower() in names and letter.lower() not in wanted:
            parts.append(names.index(letter.lower()))
        order += parts
        final.append(math.prod(shape[n] for n in parts))
    return c.reshape(c.permute(x, order), final)


def _depth_to_space(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    x = relayout(c, x, a.layout, "NCHW")
    n, depth, h, w = c.shape(x)
    b = a.block_size
    if a.mode == "DCR":
        parts = c.permute(c.reshape(x, [n, b, b, depth // b**2, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        parts = c.permute(c.reshape(x, [n, depth // b**2, b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return relayout(c, c.reshape(parts, [n, depth // b**2, h * b, w * b]), "NCHW", a.layout)


def _space_to_depth(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    x = relayout(c, x, a.layout, "NCHW")
    n, depth, h, w = c.shape(x)
    b = a.block_size
    parts = c.permute(c.reshape(x, [n, depth, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
    return relayout(c, c.reshape(parts, [n, depth * b * b, h // b, w // b]), "NCHW", a.layout)


def _space_to_batch(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    blocks, paddings = a.block_shape, a.paddings
    rest = c.ndim(x) - 1 - len(blocks)
    widths = [(0, 0), *[tuple(pair) for pair in paddings], *[(0, 0)] * rest]
    x = c.emit(relax.op.nn.pad(x, [n for pair in widths for n in pair], "constant", a.pad_value))
    batch, *shape = c.shape(x)
    apart = [batch]
    for n, size in enumerate(shape):
        apart += [size // blocks[n], blocks[n]] if n < len(blocks) else [size]
    count = len(blocks)
    order = [2 + 2 * n for n in range(count)] + [0] + [1 + 2 * n for n in range(count)]
    order += range(1 + 2 * count, len(apart))
    sizes = [size // blocks[n] if n < count else size for n, size in enumerate(shape)]
    return c.reshape(c.permute(c.reshape(x, apart), order), [batch * math.prod(blocks), *sizes])


def _batch_to_space(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    blocks, crops = a.block_shape, a.crops
    batch, *shape = c.shape(x)
    count, outer = len(blocks), batch // math.prod(blocks)
    apart = c.reshape(x, [*blocks, outer, *shape])
    order = [count]
    for n in range(count):
        order += [count + 1 + n, n]
    order += range(2 * count + 1, 1 + count + len(shape))
    sizes = [size * blocks[n] if n < count else size for n, size in enumerate(shape)]
    whole = c.reshape(c.permute(apart, order), [outer, *sizes])
    places = [(n + 1, low, sizes[n] - high, 1) for n, (low, high) in enumerate(crops)]
    return cut(c, whole, places)


def _sequence_mask(c: ConversionContext, a: SimpleNamespace, x: Value, lengths: Value) -> Value:
    shape = c.shape(x)
    numbers = np.arange(shape[a.axis]).reshape([-1 if n == a.axis else 1 for n in range(len(shape))])
    batch = 1 - a.axis
    ends = c.along(lengths, batch, len(shape))
    inside = c.emit(relax.op.less(c.const(numbers, dtype_of(lengths)), ends))
    return c.emit(relax.op.where(inside, x, c.like(a.mask_value, x)))


def _sliding_window(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return c.kernel(topi.sliding_window, x, a.axis, a.window_shape, a.strides)


def _matrix_set_diag(c: ConversionContext, a: SimpleNamespace, x: Value, diagonal: Value) -> Value:
    sides = (a.super_diag_right_align, a.sub_diag_right_align)
    align = "_".join("RIGHT" if right else "LEFT" for right in sides)
    return c.kernel(topi.matrix_set_diag, x, diagonal, (a.k1, a.k2), align)


def _strided_set(
    c: ConversionContext, a: SimpleNamespace, x: Value, v: Value, begin: Value, end: Value, strides: Value
) -> Value:
    """The elements of a slice replaced: every element takes the one of ``v`` that falls on it, or its own."""
    shape = c.shape(x)
    first, last, steps = (c.numbers(part, "a bound") for part in (begin, end, strides))
    places = np.zeros(shape, bool)
    source = np.zeros(shape, np.int64)
    index = tuple(
        slice(b, None if s < 0 and e < 0 else e, s)
        for _, b, e, s in sorted(slices(c, shape, first, last, steps, None))
    )
    places[index] = True
    source[index] = np.arange(source[index].size).reshape(source[index].shape)
    flat = c.reshape(v, [-1])
    moved = c.emit(relax.op.take(flat, c.const(source.reshape(-1), "int64"), 0))
    return c.emit(relax.op.where(c.const(places, "bool"), c.reshape(moved, shape), x))


def _dilate(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    """Each element followed by copies of a value, which the last is not."""
    for axis, stride in enumerate(a.strides):
        if stride == 1:
            continue
        shape = list(c.shape(x))
        wide = c.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        widths = [0] * (2 * len(shape) + 2)
        widths[2 * axis + 3] = stride - 1
        wide = c.emit(relax.op.nn.pad(wide, widths, "constant", a.dilation_value))
        x = c.reshape(wide, [*shape[:axis], shape[axis] * stride, *shape[axis + 1 :]])
        x = c.slice(x, axis, 0, shape[axis] * stride - stride + 1)
    return x


def _fifo_buffer(c: ConversionContext, a: SimpleNamespace, x: Value, buffer: Value) -> Value:
    axis = a.axis % c.ndim(x)
    joined = concatenate(c, SimpleNamespace(axis=axis), (buffer, x))
    end = c.shape(joined)[axis]
    return c.slice(joined, axis, end - c.shape(buffer)[axis], end)


TABLE = {
    "layout_transform": lambda c, a, x: relayout(c, x, a.src_layout, a.dst_layout),
    "nn.depth_to_space": _depth_to_space,
    "nn.space_to_depth": _space_to_depth,
    "nn.space_to_batch_nd": _space_to_batch,
    "nn.batch_to_space_nd": _batch_to_space,
    "sequence_mask": _sequence_mask,
    "sliding_window": _sliding_window,
    "matrix_set_diag": _matrix_set_diag,
    "strided_set": _strided_set,
    "nn.dilate": _dilate,
    "nn.fifo_buffer": _fifo_buffer,
}
