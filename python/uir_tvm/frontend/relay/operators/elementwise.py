# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax, topi

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value


def plain(operation: Callable[..., Any]) -> Callable[..., Value]:
    """A converter to an operator of Relax that takes the same arguments and no attributes."""
    return lambda c, a, *args: c.emit(operation(*args))


def _log(base: float) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        return c.emit(relax.op.multiply(c.emit(relax.op.log(x)), c.like(1 / np.log(base), x)))

    return convert


def clip(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    low, high = a.a_min, a.a_max
    dtype = dtype_of(x)
    if "int" in dtype:
        info = np.iinfo(dtype)
        low, high = (float(min(max(n, info.min), info.max)) for n in (low, high))
    for bound, operation in ((low, relax.op.maximum), (high, relax.op.minimum)):
        if np.isfinite(bound):
            x = c.emit(operation(x, c.const(int(bound) if "int" in dtype else bound, dtype)))
    return x


def round_away(c: ConversionContext, x: Value) -> Value:
    """The nearest integer, halves away from 0: Relay's round, where Relax's takes the even one."""
    if "float" not in dtype_of(x):
        return x
    whole = c.emit(relax.op.trunc(x))
    rest = c.emit(relax.op.abs(c.emit(relax.op.subtract(x, whole))))
    further = c.emit(relax.op.add(whole, c.emit(relax.op.sign(x))))
    return c.emit(relax.op.where(c.emit(relax.op.greater_equal(rest, c.like(0.5, x))), further, whole))


def cast(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    if a.dtype == "bool" and dtype_of(x) != "bool":
        return c.emit(relax.op.not_equal(x, c.like(0, x)))
    return c.cast(x, a.dtype)


def _trunc_quotient(c: ConversionContext, x: Value, y: Value) -> Value:
    """The quotient towards zero."""
    quotient = c.emit(relax.op.divide(x, y))
    return quotient if "int" in dtype_of(x) else c.emit(relax.op.trunc(quotient))


def _trunc_mod(c: ConversionContext, a: SimpleNamespace, x: Value, y: Value) -> Value:
    """x - y * trunc(x / y), with the sign of x."""
    size = c.emit(relax.op.floor_mod(c.emit(relax.op.abs(x)), c.emit(relax.op.abs(y))))
    negative = c.emit(relax.op.less(x, c.like(0, x)))
    return c.emit(relax.op.where(negative, c.emit(relax.op.negative(size)), size))


def where(c: ConversionContext, a: SimpleNamespace, condition: Value, x: Value, y: Value) -> Value:
    if dtype_of(condition) != "bool":
        condition = c.emit(relax.op.not_equal(condition, c.like(0, condition)))
    return c.emit(relax.op.where(condition, x, y))


def _floats(classify: Callable[..., Any], of_integers: bool) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        if "float" not in dtype_of(x):
            return c.emit(relax.op.full(c.shape(x), c.const(of_integers, "bool"), "bool"))
        return c.emit(classify(x))

    return convert


def _reinterpret(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return c.kernel(topi.reinterpret, x, a.dtype)


TABLE = {
    **{
        name: plain(getattr(relax.op, name))
        for name in (
            "abs acos acosh add asin asinh atan atanh bitwise_and bitwise_not bitwise_or bitwise_xor "
            "ceil cos cosh divide equal erf exp floor floor_divide floor_mod greater greater_equal "
            "left_shift less less_equal log logical_and logical_not logical_or logical_xor maximum "
            "minimum multiply negative not_equal power right_shift rsqrt sigmoid sign sin sinh "
            "sqrt subtract tan tanh trunc "
        ).split()
    },
    "round": lambda c, a, x: round_away(c, x),
    "fast_exp": plain(relax.op.exp),
    "fast_tanh": plain(relax.op.tanh),
    "fast_erf": plain(relax.op.erf),
    "log2": _log(2.0),
    "log10": _log(10.0),
    "isnan": _floats(relax.op.isnan, False),
    "isinf": _floats(relax.op.isinf, False),
    "isfinite": _floats(relax.op.isfinite, True),
    "clip": clip,
    "cast": cast,
    "cast_like": lambda c, a, x, like: cast(c, SimpleNamespace(dtype=dtype_of(like)), x),
    "reinterpret": _reinterpret,
    "copy": lambda c, a, x: x,
    "device_copy": lambda c, a, x: x,
    "annotation.stop_fusion": lambda c, a, x: x,
    "on_device": lambda c, a, x: x,
    "trunc_divide": lambda c, a, x, y: _trunc_quotient(c, x, y),
    "trunc_mod": _trunc_mod,
    "mod": _trunc_mod,
    "where": where,
    "zeros_like": plain(relax.op.zeros_like),
    "ones_like": plain(relax.op.ones_like),
}
