# SPDX-License-Identifier: Apache-2.0
"""The interpreter's domain of field values: floats are pairs of residues, everything else is itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..igraph.domain import Values
from ..igraph.dtypes import dtype_of
from ..igraph.iops_scalar import Reduction, Scalar
from . import field

#: What rounds to what: the ``round`` of a cast to an integer -> the unary function that it applies before.
ROUNDING = {"rint": "round", "floor": "floor", "ceil": "ceil", "round": "round_away"}


@functools.lru_cache(maxsize=4096, typed=True)
def constant(value: float, dtype: str) -> int:
    """A number written in code of a float dtype as a value: first rounded to it."""
    row = dtype_of(dtype)
    with np.errstate(all="ignore"):
        stored = float(np.asarray(value).astype(row.numpy))
    return field.embed(stored, float(ml_dtypes.finfo(row.numpy).max))


def _like(x: np.ndarray, number: float) -> np.ndarray:
    return np.full_like(x, field.embed(number))


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return field.maximum(x, _like(x, 0))


def absolute(x: np.ndarray) -> np.ndarray:
    """x or -x, whichever is not below zero in the order."""
    return np.where(field.rank(x) >= 0, x, field.neg(x))


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1."""
    order = field.rank(x)
    signed = np.where(order > 0, field.embed(1), np.where(order < 0, field.embed(-1), field.ZERO))
    return np.where(x == field.NAN, x, signed)


def leaky_relu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """x, or x * slope below zero."""
    return np.where(field.rank(x) >= 0, x, field.mul(x, slope))


def rsqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x)."""
    return field.inverse(field.mix(field.code_of("sqrt"), x))


def pows(x: np.ndarray, exponent: np.ndarray, number: float) -> np.ndarray:
    """x ** number: exact for small integers, as the square root where that is meant."""
    if number == int(number) and abs(number) <= WHOLE_POWERS:
        return field.power(x, int(number))
    if abs(number) == 0.5:
        return rsqrt(x) if number < 0 else field.mix(field.code_of("sqrt"), x)
    return field.mix(field.code_of("pow"), x, np.broadcast_to(exponent, x.shape))


#: Largest exponent that is multiplied out.
WHOLE_POWERS = 64

Meaning = Callable[..., np.ndarray]
#: The functions that are known to the field; of any other only that it is a function.
UNARY: dict[str, Meaning] = {
    "copy": lambda x: x,
    "adds": field.add,
    "subs": field.sub,
    "muls": field.mul,
    "divs": field.div,
    "maxs": field.maximum,
    "mins": field.minimum,
    "rsubs": lambda x, p: field.sub(p, x),
    "rdivs": lambda x, p: field.div(p, x),
    "exp": lambda x: field.exponential("exp", x),
    "exp2": lambda x: field.exponential("exp2", x),
    "rsqrt": rsqrt,
    "recip": field.inverse,
    "abs": absolute,
    "neg": field.neg,
    "relu": relu,
    "leaky_relu": leaky_relu,
    "sign": sign,
    "isnan": lambda x: x == field.NAN,
    "isinf": lambda x: (x == field.POS_INF) | (x == field.NEG_INF),
    "isfinite": lambda x: x >= 0,
}
BINARY: dict[str, Meaning] = {
    "add": field.add,
    "sub": field.sub,
    "mul": field.mul,
    "div": field.div,
    "max": field.maximum,
    "min": field.minimum,
}


def _ordered(test: Callable[[np.ndarray, np.ndarray], np.ndarray], beside_nan: bool = False) -> Meaning:
    def compare(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nan = (a == field.NAN) | (b == field.NAN)
        return np.where(nan, beside_nan, test(field.rank(a), field.rank(b)))

    return compare


COMPARE: dict[str, Meaning] = {
    "eq": _ordered(np.equal),
    "ne": _ordered(np.not_equal, beside_nan=True),
    "lt": _ordered(np.less),
    "le": _ordered(np.less_equal),
    "gt": _ordered(np.greater),
    "ge": _ordered(np.greater_equal),
}
_KNOWN: dict[str, Meaning] = {**UNARY, **BINARY, **COMPARE}

REDUCE: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "add": field.total,
    "mul": field.product,
    "max": lambda x, axis: field.extreme(x, axis, True),
    "min": lambda x, axis: field.extreme(x, axis, False),
}


class Field(Values):
    """Floats are values of `field`; integers and bools are what they are."""

    def storage(self, dtype: str) -> np.dtype:
        """int64 for floats."""
        return np.dtype(np.int64) if _is_float(dtype) else super().storage(dtype)

    def constant(self, value: Any, dtype: str) -> Any:
        """The residues of the number, rounded to the dtype first."""
        if not _is_float(dtype):
            return super().constant(value, dtype)
        return np.asarray(constant(float(value), dtype), np.int64)

    def whole(self, numbers: np.ndarray, dtype: str) -> np.ndarray:
        """Residues of integers."""
        return field.whole(numbers) if _is_float(dtype) else super().whole(numbers, dtype)

    def evaluate(
        self, scalar: Scalar, dtype: str, operands: Sequence[np.ndarray], params: Sequence[float] = ()
    ) -> np.ndarray:
        """A known function of residues, or a pseudo-random one for its name and parameters."""
        if not _is_float(dtype):
            return super().evaluate(scalar, dtype, operands, params)
        numbers = [np.asarray(constant(float(p), dtype), np.int64) for p in params]
        if scalar.name == "pows":
            return pows(operands[0], numbers[0], float(params[0]))
        known = _KNOWN.get(scalar.name)
        if known is None:
            return field.mix(field.code_of(scalar.name), *operands, *numbers)
        return known(*operands, *(np.broadcast_to(n, operands[0].shape) for n in numbers))

    def reduce(self, reduction: Reduction, dtype: str, array: np.ndarray, axis: int) -> np.ndarray:
        """Reduce along an axis."""
        if not _is_float(dtype):
            return super().reduce(reduction, dtype, array, axis)
        if array.shape[axis] == 0:
            shape = tuple(1 if k == axis else n for k, n in enumerate(array.shape))
            return np.full(shape, self.constant(reduction.identity(dtype), dtype))
        return REDUCE[reduction.name](array, axis)

    def contract(self, dtype: str, a: np.ndarray, b: np.ndarray, old: np.ndarray | None) -> np.ndarray:
        """a.b (+ old)."""
        if not _is_float(dtype):
            return super().contract(dtype, a, b, old)
        product = field.matmul(a, b)
        return product if old is None else field.add(product, old)

    def cast(self, source: str, target: str, mode: str | None, s: np.ndarray) -> np.ndarray:
        """Floats to floats: unchanged, since there is no rounding.  To integers: pseudo-random integers."""
        if not _is_float(source):
            if not _is_float(target):
                return super().cast(source, target, mode, s)
            return field.whole(s.astype(np.int64) if source == "bool" else s)
        if _is_float(target):
            return s
        if target == "bool":
            return s != field.ZERO
        return to_integer(s if mode in (None, "trunc") else _rounded(mode, s), target)


def _rounded(mode: str, s: np.ndarray) -> np.ndarray:
    return field.mix(field.code_of(ROUNDING[mode]), s)


def to_integer(s: np.ndarray, target: str) -> np.ndarray:
    """The truncation of values: pseudo-random integers; of NaN, zero."""
    bits = field.bits_of(field.code_of("integer"), s) >> np.uint64(1)
    return np.where(s == field.NAN, np.uint64(0), bits).astype(np.int64).astype(dtype_of(target).numpy)


def _is_float(dtype: str) -> bool:
    return dtype_of(dtype).kind == "float"


FIELD = Field()
