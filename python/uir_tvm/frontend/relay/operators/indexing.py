# SPDX-License-Identifier: Apache-2.0
"""Reading and writing by indices, and sorting."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from tvm import relax, topi

from ....sizes.open_arithmetic import least
from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value


def _from_end(c: ConversionContext, index: Value, size: int) -> Value:
    """Indices below zero count from the end."""
    negative = c.emit(relax.op.less(index, c.like(0, index)))
    return c.emit(relax.op.where(negative, c.emit(relax.op.add(index, c.like(size, index))), index))


def _take(c: ConversionContext, a: SimpleNamespace, x: Value, index: Value) -> Value:
    shape, axis = c.shape(x), a.axis
    if axis is None:
        x, axis = c.reshape(x, [-1]), 0
    axis %= c.ndim(x)
    size, batch = c.shape(x)[axis], a.batch_dims
    if a.mode == "wrap":
        index = c.emit(relax.op.floor_mod(index, c.like(size, index)))
    elif a.mode == "clip":
        index = c.emit(
            relax.op.minimum(c.emit(relax.op.maximum(index, c.like(0, index))), c.like(size - 1, index))
        )
    if not batch:
        return c.emit(relax.op.take(x, index, axis))
    # the batch as part of the axis: each row's indices begin where the row does
    batch = batch % c.ndim(index) if batch < 0 else batch
    if axis < batch:
        raise c.refuse(f"takes along axis {axis} of {batch} batch axes", "an axis behind the batch's")
    x = c.permute(x, [*range(batch), axis, *(n for n in range(batch, len(shape)) if n != axis)])
    moved = c.shape(x)
    rows = math.prod(moved[:batch])
    flat = c.reshape(x, [rows * size, *moved[batch + 1 :]])
    indices = c.shape(index)
    offsets = np.arange(rows).reshape(*indices[:batch], *[1] * (len(indices) - batch)) * size
    index = c.emit(relax.op.add(index, c.like(offsets, index)))
    taken = c.emit(relax.op.take(flat, index, 0))
    between, behind = axis - batch, len(indices)
    order = [*range(batch), *range(behind, behind + between), *range(batch, behind)]
    return c.permute(taken, [*order, *range(behind + between, c.ndim(taken))])


def _gather(c: ConversionContext, a: SimpleNamespace, x: Value, index: Value) -> Value:
    axis = a.axis % c.ndim(x)
    return c.emit(relax.op.gather_elements(x, index, axis))


def _gather_nd(c: ConversionContext, a: SimpleNamespace, x: Value, index: Value) -> Value:
    """Relay has the coordinates along the first axis, Relax along the last."""
    ndim = c.ndim(index)
    moved = c.permute(index, [*range(1, ndim), 0])
    return c.emit(relax.op.gather_nd(x, c.cast(moved, "int64"), a.batch_dims or 0))


def _scatter_elements(
    c: ConversionContext, a: SimpleNamespace, x: Value, index: Value, updates: Value
) -> Value:
    axis = a.axis % c.ndim(x)
    index = _from_end(c, index, c.shape(x)[axis])
    return c.emit(relax.op.scatter_elements(x, index, updates, axis, a.reduction))


def _scatter_nd(c: ConversionContext, a: SimpleNamespace, x: Value, index: Value, updates: Value) -> Value:
    ndim = c.ndim(index)
    moved = c.permute(index, [*range(1, ndim), 0])
    return c.emit(relax.op.scatter_nd(x, c.cast(moved, "int64"), updates, a.mode))


def _one_hot(
    c: ConversionContext, a: SimpleNamespace, index: Value, on: Value, off: Value, depth: Value = None
) -> Value:
    count = a.depth if depth is None else c.numbers(depth, "a depth")[0]
    shape = c.shape(index)
    axis = a.axis % (len(shape) + 1)
    column = c.reshape(index, [*shape[:axis], 1, *shape[axis:]])
    numbers = np.arange(count).reshape([-1 if n == axis else 1 for n in range(len(shape) + 1)])
    hit = c.emit(relax.op.equal(column, c.like(numbers, column)))
    dtype = a.dtype or dtype_of(on)
    return c.emit(relax.op.where(hit, c.cast(on, dtype), c.cast(off, dtype)))


def _adv_index(c: ConversionContext, a: SimpleNamespace, tensors: Value) -> Value:
    data, *indices = tensors
    wrapped = [_from_end(c, index, size) for index, size in zip(indices, c.shape(data), strict=False)]
    return c.emit(relax.op.index_tensor(data, wrapped))


def _argsort(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    found = c.emit(relax.op.argsort(x, a.axis, not a.is_ascend, "int32"))
    return c.cast(found, a.dtype or "int32")


def _topk(c: ConversionContext, a: SimpleNamespace, x: Value, k: Value = None) -> Value:
    count = a.k if k is None else c.numbers(k, "a count")[0]
    axis = a.axis % c.ndim(x)
    size = c.shape(x)[axis]
    count = size if count < 1 else least(count, size)
    both = c.emit(relax.op.topk(x, count, axis, "both", not a.is_ascend, "int32"))
    values, places = (c.emit(relax.TupleGetItem(both, n)) for n in range(2))
    places = c.cast(places, a.dtype or "int32")
    return {"both": (values, places), "values": values, "indices": places}[a.ret_type]


def _searchsorted(c: ConversionContext, a: SimpleNamespace, table: Value, x: Value) -> Value:
    """How many of a sorted row's numbers lie before each value."""
    rows, values = c.shape(table), c.shape(x)
    wide = c.reshape(x, [*values, 1])
    if len(rows) > 1:
        table = c.reshape(table, [*rows[:-1], 1, rows[-1]])
    before = c.emit((relax.op.less_equal if a.right else relax.op.less)(table, wide))
    return c.emit(relax.op.sum(c.cast(before, a.dtype or "int32"), -1))


def _unravel(c: ConversionContext, a: SimpleNamespace, index: Value, shape: Value) -> Value:
    sizes = c.numbers(shape, "a shape")
    result = []
    for n, size in enumerate(sizes):
        behind = math.prod(sizes[n + 1 :])
        quotient = c.emit(relax.op.floor_divide(index, c.like(behind, index)))
        result.append(c.emit(relax.op.floor_mod(quotient, c.like(size, index))))
    return c.emit(relax.op.concat([c.reshape(row, [1, *c.shape(row)]) for row in result], 0))


def _invert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    numbers = c.like(np.arange(c.shape(x)[0]), x)
    return c.emit(relax.op.scatter_elements(numbers, x, numbers, 0))


def _reverse_sequence(c: ConversionContext, a: SimpleNamespace, x: Value, lengths: Value) -> Value:
    return c.kernel(topi.reverse_sequence, x, lengths, a.seq_axis, a.batch_axis)


TABLE = {
    "take": _take,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "one_hot": _one_hot,
    "dyn.one_hot": _one_hot,
    "adv_index": _adv_index,
    "argsort": _argsort,
    "sort": lambda c, a, x: c.emit(relax.op.sort(x, a.axis, not a.is_ascend)),
    "topk": _topk,
    "dyn.topk": _topk,
    "searchsorted": _searchsorted,
    "unravel_index": _unravel,
    "invert_permutation": _invert,
    "reverse_sequence": _reverse_sequence,
}
