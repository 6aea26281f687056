# SPDX-License-Identifier: Apache-2.0
"""What the interpreter computes with: which arrays stand for the elements of a dtype, and what the named
scalar functions do to them.

The interpreter moves boxes about; only here do elements have values.  `Values` are the numbers themselves;
another domain lets the same interpreter ask another question (see `uir_tvm.verify.field_domain`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .dtypes import dtype_of, numpy_of
from .iops_scalar import Reduction, Scalar, evaluate, reduce_array, round_half_away


class Values:
    """The numbers themselves: the meaning of the iOp table."""

    def storage(self, dtype: str) -> np.dtype:
        """The NumPy dtype of arrays of an iGraph dtype."""
        return numpy_of(dtype)

    def constant(self, value: Any, dtype: str) -> Any:
        """A number written in an iOp, as a 0-d array of `storage`."""
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(numpy_of(dtype))

    def whole(self, numbers: np.ndarray, dtype: str) -> np.ndarray:
        """Exact integers (int64) as elements of a dtype."""
        return numbers.astype(numpy_of(dtype))

    def evaluate(
        self, scalar: Scalar, dtype: str, operands: Sequence[np.ndarray], params: Sequence[float] = ()
    ) -> np.ndarray:
        """A named scalar function (see `iops_scalar.evaluate`)."""
        return evaluate(scalar, dtype, operands, params)

    def reduce(self, reduction: Reduction, dtype: str, array: np.ndarray, axis: int) -> np.ndarray:
        """Reduce a 2-D array along ``axis``, keeping it with length 1; nothing gives the identity."""
        return reduce_array(reduction, dtype, array, axis)

    def contract(self, dtype: str, a: np.ndarray, b: np.ndarray, old: np.ndarray | None) -> np.ndarray:
        """a.b (+ old), floats accumulated in fp64 and rounded once, integers in their own type (wrapping)."""
        row = dtype_of(dtype)
        compute = np.float64 if row.kind == "float" else row.numpy
        with np.errstate(all="ignore"):
            total = a.astype(compute) @ b.astype(compute)
            if old is not None:
                total = total + old.astype(compute)
            return total.astype(row.numpy)

    def cast(self, source: str, target: str, mode: str | None, s: np.ndarray) -> np.ndarray:
        """Convert from one dtype to another.

        To bool: not zero.  Float to integer: by ``mode`` (default trunc), then saturated, NaN to 0 (hardware
        defines no result for a value out of range).  Float to narrower float: by ``mode`` (default rint, to
        nearest even).  ``round`` takes halves away from zero.
        """
        from_, to = dtype_of(source), dtype_of(target)
        with np.errstate(all="ignore"):
            if to.kind == "bool":
                return s.astype(from_.compute) != 0
            if from_.kind == "float" and to.kind != "float":
                return _saturate(_ROUND[mode or "trunc"](s.astype(np.float64)), to.numpy)
            if from_.kind == "float" and to.bytes < from_.bytes:
                return _narrow(s.astype(from_.compute), to.numpy, mode or "rint")
            return s.astype(from_.compute).astype(to.numpy)


#: The one that every run uses unless it is told otherwise.
VALUES = Values()

_ROUND: dict[str, Callable[..., Any]] = {
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": round_half_away,
}


def _saturate(whole: np.ndarray, to: np.dtype) -> np.ndarray:
    limits = np.iinfo(to)
    # the greatest int64 is no fp64: select instead of clip, so that nothing out of range is ever converted
    low, high = whole <= float(limits.min), whole >= float(limits.max)
    safe = np.where(low | high | np.isnan(whole), 0.0, whole).astype(to)
    return np.where(low, limits.min, np.where(high, limits.max, safe)).astype(to)


def _next(x: np.ndarray, to: np.dtype, sign: int) -> np.ndarray:
    """The next number up or down; NaN beyond the last of a float type without infinities."""
    infinity = to.type(sign * np.inf)
    if not np.isnan(infinity):
        return np.nextafter(x, infinity)
    last = to.type(sign * float(ml_dtypes.finfo(to).max))
    return np.where(x == last, infinity, np.nextafter(x, last))


def _narrow(x: np.ndarray, to: np.dtype, mode: str) -> np.ndarray:
    nearest = x.astype(to)
    if mode == "rint":
        return nearest
    back = nearest.astype(x.dtype)
    below = np.where(back > x, _next(nearest, to, -1), nearest)
    above = np.where(back < x, _next(nearest, to, 1), nearest)
    if mode in ("floor", "ceil"):
        return (below if mode == "floor" else above).astype(to)
    towards_zero = np.where(x < 0, above, below)
    if mode == "trunc":
        return towards_zero.astype(to)
    away = np.where(x < 0, below, above)
    near = towards_zero.astype(x.dtype)
    half = np.abs(x - near) >= np.abs(away.astype(x.dtype) - near) / 2
    return np.where(half, away, towards_zero).astype(to)
