# SPDX-License-Identifier: Apache-2.0
"""Maxima and minima whose identity is an infinity, and pools: of maxima, and averages along open axes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import tvm
from tvm import relax, te, tirx

from .row_expressions import extent_of
from .typed_rules import typed_rules


def _is_float(dtype: str) -> bool:
    return str(dtype).startswith(("float", "bfloat"))


def _identity(dtype: str, sign: int) -> Any:
    """What changes no maximum (sign -1) or minimum: an infinity, of integers the extreme."""
    if _is_float(dtype):
        return tirx.const(sign * inf, dtype)
    return tirx.min_value(dtype) if sign < 0 else tirx.max_value(dtype)


def _extremum(combine: Callable[[Any, Any], Any], sign: int, name: str) -> Any:
    """A reducer; the identity of TVM's own is finite, wrong for rows of infinities."""
    return te.comm_reducer(combine, lambda dtype: _identity(dtype, sign), name=name)


MAXIMUM = _extremum(lambda a, b: tirx.max(a, b), -1, "max")
MINIMUM = _extremum(lambda a, b: tirx.min(a, b), 1, "min")


def max_pool(
    x: te.Tensor,
    out: list[int],
    kernel: list[int],
    strides: list[int],
    dilation: list[int],
    before: list[int],
) -> te.Tensor:
    """The largest of every window along the last axes; beyond the tensor there is nothing.

    ``before`` is the padding at the beginning of each axis; windows may hang over its end.
    """
    return _pool(
        x, out, kernel, strides, dilation, before, (MAXIMUM, _identity(str(x.dtype), -1), "pool_max")
    )


def average_pool(
    x: te.Tensor,
    out: list[int],
    kernel: list[int],
    strides: list[int],
    dilation: list[int],
    before: list[int],
) -> te.Tensor:
    """The sum of every window over the number of its places; beyond the tensor there are zeros."""
    reduced = (te.sum, tirx.const(0, str(x.dtype)), "pool_sum")
    total = _pool(x, out, kernel, strides, dilation, before, reduced)
    share = tirx.const(1 / prod(kernel), str(x.dtype))
    return te.compute(total.shape, lambda *i: total(*i) * share, name="pool_avg")


def _pool(
    x: te.Tensor,
    out: list[int],
    kernel: list[int],
    strides: list[int],
    dilation: list[int],
    before: list[int],
    reduced: tuple[Any, Any, str],
) -> te.Tensor:
    """Windows along the last axes, reduced by a function with its identity, which is what lies beyond."""
    combine, nothing, name = reduced
    rank = len(kernel)
    lead = len(x.shape) - rank
    sizes = [extent_of(extent) for extent in x.shape[lead:]]
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(out, strides, kernel, dilation, strict=True)]

    def surrounded(*indices: Any) -> Any:
        places = [i - b for i, b in zip(indices[lead:], before, strict=True)]
        inside = [
            test
            for place, size, b, r in zip(places, sizes, before, reach, strict=True)
            for test in ([place >= 0] if b else []) + ([place < size] if _reaches(r, size + b) else [])
        ]
        value = x(*indices[:lead], *places)
        return tirx.if_then_else(tirx.all(*inside), value, nothing) if inside else value

    padded: Any = x
    if not all(map(_known, [*out, *sizes])):
        # what lies beyond is nothing whatever the sizes are
        padded = surrounded
    elif any(before) or any(r > size for r, size in zip(reach, sizes, strict=True)):
        padded = te.compute([*x.shape[:lead], *reach], surrounded, name="pad_temp")
    taps = [te.reduce_axis((0, k), name=f"k{axis}") for axis, k in enumerate(kernel)]

    def whole(*indices: Any) -> Any:
        window = zip(indices[lead:], strides, taps, dilation, strict=True)
        return combine(padded(*indices[:lead], *(i * s + t * d for i, s, t, d in window)), axis=taps)

    return te.compute([*x.shape[:lead], *out], whole, name=name)


def legalize_max_pool(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """A max pool whose padding is -inf (TVM pads by the least finite number); of other layouts TVM's own."""
    return _legalized(max_pool, builder, call)


def legalize_average_pool(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """An average pool along open axes, whose windows end with the padding; of numbers TVM's own."""
    sizes = [extent_of(extent) for value in (call, call.args[0]) for extent in value.ty.shape.values]
    padding = [int(value) for value in call.attrs.padding]
    counts = bool(call.attrs.count_include_pad) or not any(padding)
    wide = str(call.ty.dtype) in ("float32", "float64")
    if all(map(_known, sizes)) or bool(call.attrs.ceil_mode) or not counts or not wide:
        return typed_rules()[str(call.op.name)](builder, call)
    return _legalized(average_pool, builder, call)


def _legalized(pool: Callable[..., te.Tensor], builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """A pool of images whose channels lie before their axes; of other layouts TVM's own."""
    attrs = call.attrs
    shape = [extent_of(extent) for extent in call.ty.shape.values]
    if (
        not str(attrs.layout).startswith("NC")
        or attrs.out_layout != attrs.layout
        or 0 in filter(_known, shape)
    ):
        return typed_rules()[str(call.op.name)](builder, call)
    kernel = [int(k) for k in attrs.pool_size]
    rank = len(kernel)
    window = ([int(value) for value in values] for values in (attrs.strides, attrs.dilation, attrs.padding))
    strides, dilation, padding = window
    return builder.call_te(
        pool,
        call.args[0],
        shape[-rank:],
        kernel,
        strides,
        dilation,
        padding[:rank],
        primfunc_name_hint=str(call.op.name).removeprefix("relax.nn."),
    )


def _reaches(reach: Any, end: Any) -> bool:
    """Whether windows hang over the end, or may."""
    return not _known(reach) or not _known(end) or reach > end


def _known(extent: Any) -> bool:
    return isinstance(extent, int)
