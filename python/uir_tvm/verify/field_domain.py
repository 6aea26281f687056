# SPDX-License-Identifier: Apache-2.0
"""The interpreter's domain of field values: floats are pairs of residues, everything else is itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..igraph import finite_field as field
from ..igraph.domain import Values
from ..igraph.dtypes import dtype_of
from ..igraph.iops_scalar import Reduction, Scalar

#: What rounds to what: the ``round`` of a cast to an integer -> the unary function that it applies before.
ROUNDING = {"rint": "round", "floor": "floor", "ceil": "ceil", "round": "round_away"}


@functools.lru_cache(maxsize=4096, typed=True)
def constant(value: float, dtype: str) -> int:
    """A number written in code of a float dtype as a value: first rounded to it."""
    row = dtype_of(dtype)
    with np.errstate(all="ignore"):
        stored = float(np.asarray(value).astype(row.numpy))
    return field.embed(stored, float(ml_dtypes.finfo(row.numpy).max))


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
        if scalar.residue is None:
            return field.mix(field.code_of(scalar.name), *operands, *numbers)
        if scalar.by_number:
            return np.asarray(scalar.residue(operands[0], float(params[0]), int(numbers[0])))
        return scalar.residue(*operands, *(np.broadcast_to(n, operands[0].shape) for n in numbers))

    def reduce(self, reduction: Reduction, dtype: str, array: np.ndarray, axis: int) -> np.ndarray:
        """Reduce along an axis."""
        if not _is_float(dtype):
            return super().reduce(reduction, dtype, array, axis)
        if array.shape[axis] == 0:
            shape = tuple(1 if k == axis else n for k, n in enumerate(array.shape))
            return np.full(shape, self.constant(reduction.identity(dtype), dtype))
        return reduction.residue(array, axis)

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
