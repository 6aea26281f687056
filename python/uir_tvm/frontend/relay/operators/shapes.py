# SPDX-License-Identifier: Apache-2.0
"""Views, slices, joins and tensors made of numbers; also where shapes are given as constant tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax

from ....sizes.open_arithmetic import is_open, least, most
from ....sizes.open_size import AnySize, OpenSize
from ...open_expressions import expressions
from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value

#: Ends of slices from here on mean the end of the axis.
_BEHIND_ALL = 2**31 - 1


def new_shape(
    c: ConversionContext, old: Sequence[AnySize], codes: Sequence[AnySize], keep_zero: bool = False
) -> list[AnySize]:
    """The shape that ``reshape`` means: 0 copies, -1 is inferred, -2 copies the rest, -3 joins, -4 splits."""
    result: list[AnySize] = []
    at, place, unknown = 0, 0, None
    codes = list(codes)
    try:
        while at < len(codes):
            code = codes[at]
            if code == 0 and not keep_zero:
                result.append(old[place])
                place += 1
            elif code == -1:
                unknown = len(result)
                result.append(1)
                place += 1
            elif code == -2:
                result += old[place:]
                place = len(old)
            elif code == -3:
                result.append(old[place] * old[place + 1])
                place += 2
            elif code == -4:
                left, right = codes[at + 1 : at + 3]
                left = old[place] // right if left == -1 else left
                result += [left, old[place] // left if right == -1 else right]
                at, place = at + 2, place + 1
            else:
                result.append(code)
                place += 1
            at += 1
    except (IndexError, ValueError, ZeroDivisionError):
        raise c.refuse(f"cannot make {codes} of {tuple(old)}", "codes that fit the shape") from None
    size, rest = math.prod(old), math.prod(result)
    if unknown is not None and rest != 0:
        result[unknown] = size // rest
    if math.prod(result) != size:
        raise c.refuse(f"cannot make {codes} of {tuple(old)}", f"{size} elements")
    return result


def _reshape(c: ConversionContext, a: SimpleNamespace, x: Value, shape: Value = None) -> Value:
    codes = a.newshape if shape is None else c.numbers(shape, "a shape")
    return c.reshape(x, new_shape(c, c.shape(x), codes, bool(getattr(a, "allowzero", False))))


def _reverse_reshape(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    shape = new_shape(c, c.shape(x)[::-1], list(a.newshape)[::-1])
    return c.reshape(x, shape[::-1])


def _reshape_like(c: ConversionContext, a: SimpleNamespace, x: Value, like: Value) -> Value:
    have, want = list(c.shape(x)), list(c.shape(like))
    begin, end = a.lhs_begin, len(have) if a.lhs_end is None else a.lhs_end
    first, last = a.rhs_begin, len(want) if a.rhs_end is None else a.rhs_end
    return c.reshape(x, have[:begin] + want[first:last] + have[end:])


def _transpose(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    ndim = c.ndim(x)
    return c.permute(x, [n % ndim for n in a.axes] if a.axes else range(ndim)[::-1])


def _expand_dims(c: ConversionContext, a: SimpleNamespace, x: Value, axis: Value = None) -> Value:
    shape = list(c.shape(x))
    place = a.axis if axis is None else c.numbers(axis, "an axis")[0]
    place = place + len(shape) + 1 if place < 0 else place
    return c.reshape(x, [*shape[:place], *[1] * a.num_newaxis, *shape[place:]])


def _squeeze(c: ConversionContext, a: SimpleNamespace, x: Value, axes: Value = None) -> Value:
    shape = c.shape(x)
    given = a.axis if axes is None else c.numbers(axes, "axes")
    gone = (
        [n for n, size in enumerate(shape) if size == 1] if given is None else [n % len(shape) for n in given]
    )
    if any(shape[n] != 1 for n in gone):
        raise c.refuse(f"cannot remove axes {gone} of {shape}", "axes of size 1")
    return c.reshape(x, [size for n, size in enumerate(shape) if n not in gone])


def broadcast(c: ConversionContext, x: Value, shape: Sequence[int]) -> Value:
    return c.emit(relax.op.broadcast_to(x, tuple(expressions(shape))))


def _broadcast_to(c: ConversionContext, a: SimpleNamespace, x: Value, shape: Value = None) -> Value:
    return broadcast(c, x, a.shape if shape is None else c.numbers(shape, "a shape"))


def _collapse(c: ConversionContext, x: Value, target: Sequence[int]) -> Value:
    shape = c.shape(x)
    aligned = [1] * (len(shape) - len(target)) + list(target)
    axes = [n for n, (have, want) in enumerate(zip(shape, aligned, strict=True)) if have != want]
    return c.reshape(c.emit(relax.op.sum(x, axes)) if axes else x, target)


def _collapse_to(c: ConversionContext, a: SimpleNamespace, x: Value, shape: Value = None) -> Value:
    return _collapse(c, x, a.shape if shape is None else c.numbers(shape, "a shape"))


def concatenate(c: ConversionContext, a: SimpleNamespace, parts: Value) -> Value:
    if not isinstance(parts, tuple) or not parts:
        raise c.refuse("joins no tensors", "a tuple of tensors")
    return c.emit(relax.op.concat(list(parts), a.axis))


def _stack(c: ConversionContext, a: SimpleNamespace, parts: Value) -> Value:
    place = a.axis % (c.ndim(parts[0]) + 1)
    wide = [_expand_dims(c, SimpleNamespace(axis=place, num_newaxis=1), part) for part in parts]
    return c.emit(relax.op.concat(wide, place))


def _split(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    axis = a.axis % c.ndim(x)
    size, places = c.shape(x)[axis], a.indices_or_sections
    if isinstance(places, int):
        if places <= 0 or size % places:
            raise c.refuse(f"cannot cut {size} into {places}", "a number that divides it")
        places = [size // places * n for n in range(1, places)]
    ends = [least(n, size) for n in [*places, size]]
    return tuple(c.slice(x, axis, b, e) for b, e in zip([0, *ends[:-1]], ends, strict=True))


def _tile(c: ConversionContext, a: SimpleNamespace, x: Value, counts: Value = None) -> Value:
    return c.emit(relax.op.tile(x, list(a.reps if counts is None else c.numbers(counts, "repeats"))))


def _repeat(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    axis = a.axis % c.ndim(x)
    shape = list(c.shape(x))
    apart = c.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    wide = broadcast(c, apart, [*shape[: axis + 1], a.repeats, *shape[axis + 1 :]])
    return c.reshape(wide, [*shape[:axis], shape[axis] * a.repeats, *shape[axis + 1 :]])


def _meshgrid(c: ConversionContext, a: SimpleNamespace, vectors: Value) -> Value:
    sizes = [c.shape(v)[0] if c.ndim(v) else 1 for v in vectors]
    order = list(range(len(vectors)))
    if a.indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    result = []
    for n, vector in enumerate(vectors):
        shape = [1] * len(sizes)
        shape[order.index(n)] = sizes[n]
        result.append(broadcast(c, c.reshape(vector, shape), [sizes[m] for m in order]))
    return tuple(result)


def _full(c: ConversionContext, a: SimpleNamespace, value: Value, shape: Value = None) -> Value:
    sizes = a.shape if shape is None else c.numbers(shape, "a shape")
    dtype = a.dtype or dtype_of(value)
    return c.emit(relax.op.full(tuple(expressions(sizes)), c.cast(value, dtype), dtype))


def _filled(number: int) -> Any:
    def convert(c: ConversionContext, a: SimpleNamespace, shape: Value = None) -> Value:
        sizes = a.shape if shape is None else c.numbers(shape, "a shape")
        return c.emit(relax.op.full(tuple(expressions(sizes)), c.const(number, a.dtype), a.dtype))

    return convert


def _arange(c: ConversionContext, a: SimpleNamespace, start: Value, stop: Value, step: Value) -> Value:
    begin, end, stride = (c.static(v, "a bound").item() for v in (start, stop, step))
    if not stride:
        raise c.refuse("has step 0", "a step")
    count = max(0, int(np.ceil((end - begin) / stride)))
    return c.const(begin + stride * np.arange(count), a.dtype or dtype_of(start))


def slices(
    c: ConversionContext,
    shape: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None,
    axes: Sequence[int] | None,
    mode: str = "end",
) -> list[tuple[int, AnySize, AnySize, int]]:
    """(axis, begin, end, stride) of each axis that is cut, within the tensor."""
    axes = list(range(len(begin))) if axes is None else [n % len(shape) for n in axes]
    strides = [1] * len(axes) if not strides or mode == "size" else list(strides)
    strides += [strides[0] if len(strides) == 1 else 1] * (len(axes) - len(strides))
    ends = list(end) + [shape[n] for n in axes[len(end) :]]
    result = []
    for axis, first, last, stride in zip(axes, begin, ends, strides, strict=True):
        size = shape[axis]
        if mode == "size":
            first = first + size if first < 0 else first
            last = size if last < 0 else first + last
        if stride == 0:
            raise c.refuse("has stride 0", "a stride")
        if is_open((size, first, last)):
            result.append((axis, *_within(c, size, first, last, stride), stride))
            continue
        covered = range(size)[slice(first, None if stride < 0 and last < -size else last, stride)]
        result.append((axis, covered.start, covered.stop, stride))
    return result


def _within(
    c: ConversionContext, size: AnySize, first: AnySize, last: AnySize, stride: AnySize
) -> tuple[AnySize, AnySize]:
    """Where a slice of an open axis begins and ends; a bound that no tensor reaches is the axis' end."""
    if stride < 0:
        raise c.refuse("runs backwards along an open axis", "a stride above 0")

    def bound(place: AnySize) -> AnySize:
        if not isinstance(place, OpenSize) and place >= _BEHIND_ALL:
            return size
        return most(place + size, 0) if place < 0 else least(place, size)

    return bound(first), bound(last)


def cut(c: ConversionContext, x: Value, places: Sequence[tuple[int, AnySize, AnySize, int]]) -> Value:
    """A slice; what runs backwards is reversed first."""
    shape = c.shape(x)
    bounds: tuple[list[AnySize], ...] = ([], [], [], [])
    for axis, begin, end, stride in places:
        if stride < 0:
            x = c.emit(relax.op.flip(x, axis))
            size = shape[axis]
            begin, end, stride = size - 1 - begin, size - 1 - end, -stride
        if (begin, end, stride) != (0, shape[axis], 1):
            for column, value in zip(bounds, (axis, begin, most(begin, end), stride), strict=True):
                column.append(value)
    if not bounds[0]:
        return x
    # TVM cannot tell that an open bound lies within; `_within` says so
    within = is_open((*bounds[1], *bounds[2], *shape))
    return c.emit(relax.op.strided_slice(x, *map(expressions, bounds), assume_inbound=within))


def _strided_slice(
    c: ConversionContext,
    a: SimpleNamespace,
    x: Value,
    begin: Value = None,
    end: Value = None,
    strides: Value = None,
) -> Value:
    if begin is None:
        given = (a.begin, a.end, a.strides)
    else:
        given = (c.numbers(begin, "a begin"), c.numbers(end, "an end"), c.numbers(strides, "a stride"))
    return cut(c, x, slices(c, c.shape(x), *given, getattr(a, "axes", None), a.slice_mode))


def _slice_like(c: ConversionContext, a: SimpleNamespace, x: Value, like: Value) -> Value:
    shape, want = c.shape(x), c.shape(like)
    axes = [n % len(shape) for n in a.axes] if a.axes else range(min(len(shape), len(want)))
    return cut(c, x, [(n, 0, want[n], 1) for n in axes])


def _shape_of(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return c.const(c.shape(x), a.dtype or "int32")


def _size_of(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return c.const(math.prod(c.shape(x)), a.dtype or "int32")


def _trilu(c: ConversionContext, a: SimpleNamespace, x: Value, k: Value) -> Value:
    operation = relax.op.triu if a.upper else relax.op.tril
    return c.emit(operation(x, c.numbers(k, "a diagonal")[0]))


_ZEROS, _ONES = _filled(0), _filled(1)

TABLE = {
    "reshape": _reshape,
    "dyn.reshape": _reshape,
    "contrib_reverse_reshape": _reverse_reshape,
    "reshape_like": _reshape_like,
    "transpose": _transpose,
    "expand_dims": _expand_dims,
    "dyn.expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "dyn.squeeze": _squeeze,
    "nn.batch_flatten": lambda c, a, x: c.reshape(x, [c.shape(x)[0], -1]),
    "broadcast_to": _broadcast_to,
    "dyn.broadcast_to": _broadcast_to,
    "broadcast_to_like": lambda c, a, x, like: broadcast(c, x, c.shape(like)),
    "collapse_sum_to": _collapse_to,
    "collapse_sum_like": lambda c, a, x, like: _collapse(c, x, c.shape(like)),
    "concatenate": concatenate,
    "stack": _stack,
    "split": _split,
    "tile": _tile,
    "dyn.tile": _tile,
    "repeat": _repeat,
    "reverse": lambda c, a, x: c.emit(relax.op.flip(x, a.axis)),
    "meshgrid": _meshgrid,
    "full": _full,
    "dyn.full": _full,
    "full_like": lambda c, a, x, v: c.emit(relax.op.full(c.shape(x), c.cast(v, dtype_of(x)), dtype_of(x))),
    "zeros": _ZEROS,
    "dyn.zeros": _ZEROS,
    "ones": _ONES,
    "dyn.ones": _ONES,
    "arange": _arange,
    "strided_slice": _strided_slice,
    "dyn.strided_slice": _strided_slice,
    "slice_like": _slice_like,
    "shape_of": _shape_of,
    "vm.shape_of": _shape_of,
    "ndarray_size": _size_of,
    "trilu": _trilu,
}
