# SPDX-License-Identifier: Apache-2.0
"""What follows an integer product, output by output: factors, terms, bounds, and rounding to bytes."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..frontend.relax_view import array_of, dtype_of, is_constant, op_name, shape_of
from ..library.integer_attrs import IntegerEnding
from .byte_tensors import BYTES, Bytes

#: Stages of a result: sums of int32, floats, floats that are whole numbers, bytes.
SUMS, FLOATS, WHOLE, DONE = "sums", "floats", "whole", "bytes"


@attrs.frozen(eq=False)
class Ending:
    """The result so far: between two bounds, (sums + start) * factor + term; then rounded, plus zero.

    Attributes
    ----------
    start, factor, term : numpy.ndarray
        Of each output: int64, and twice float64.
    low, high : float
    zero : float
    stage : str
        `SUMS`, `FLOATS`, `WHOLE` or `DONE`.
    dtype : str
        Of the result.
    """

    start: np.ndarray
    factor: np.ndarray
    term: np.ndarray
    low: float = -np.inf
    high: float = np.inf
    zero: float = 0.0
    stage: str = SUMS
    dtype: str = "int32"

    @classmethod
    def of(cls, factor: np.ndarray, scaled: bool) -> Ending:
        """A product of numbers with scales, or of int32."""
        start, term = np.zeros(factor.shape, np.int64), np.zeros(factor.shape)
        if not scaled:
            return cls(start, np.ones(factor.shape), term)
        return cls(start, factor.astype(np.float64), term, stage=FLOATS, dtype="float32")

    @property
    def bounded(self) -> bool:
        """Whether a bound is there."""
        return np.isfinite(self.low) or np.isfinite(self.high)

    @property
    def usable(self) -> bool:
        """Whether the library can end there."""
        finite = np.isfinite(self.factor.astype(np.float32)).all()
        return self.stage != WHOLE and bool(finite and np.isfinite(self.term.astype(np.float32)).all())

    def packed(self) -> IntegerEnding:
        """As the library reads it."""
        return IntegerEnding(
            start=self.start.astype(np.int32),
            factor=self.factor.astype(np.float32),
            term=self.term.astype(np.float32),
            low=self.low,
            high=self.high,
        )


@attrs.frozen(eq=False)
class EndedProduct:
    """A product of bytes, where it begins and where it ends.

    Attributes
    ----------
    call : Call
        The product or convolution.
    x : Bytes
        Its operand.
    numbers : numpy.ndarray
        Its weight, the outputs first.
    ending : Ending
    image : bool
        Whether it is a convolution.
    end : Binding
        The last operator that is part of it.
    """

    call: Any
    x: Bytes
    numbers: np.ndarray
    ending: Ending
    image: bool
    end: Any


def after(ending: Ending, call: Any, place: int, channel: int) -> Ending | None:
    """The ending with one more operator, of which it is an operand; None where that is no part of it.

    Parameters
    ----------
    ending : Ending
    call : Call
    place : int
        Of the result so far among the call's operands.
    channel : int
        The axis of the outputs.
    """
    name = op_name(call)
    if name == "astype":
        return _cast(ending, dtype_of(call))
    if name == "nn.relu":
        return _bound(ending, "maximum", 0.0)
    if name == "round":
        return attrs.evolve(ending, stage=WHOLE) if ending.stage == FLOATS else None
    if name == "clip":
        low = _bound(ending, "maximum", float(call.args[1].value))
        return None if low is None else _bound(low, "minimum", float(call.args[2].value))
    if name not in ("add", "divide", "maximum", "minimum", "multiply", "subtract") or len(call.args) != 2:
        return None
    if place == 1 and name in ("divide", "subtract"):
        return None
    numbers = _by_output(call.args[1 - place], call, channel, ending.factor.size)
    if numbers is None or not np.isfinite(numbers).all():
        return None
    if name in ("maximum", "minimum"):
        one = bool((numbers == numbers[0]).all())
        return _bound(ending, name, float(numbers[0])) if one else None
    if name in ("add", "subtract"):
        return _moved(ending, numbers if name == "add" else -numbers)
    return _scaled(ending, numbers if name == "multiply" else 1.0 / numbers if numbers.all() else None)


def _by_output(expr: Any, call: Any, channel: int, outputs: int) -> np.ndarray | None:
    """A constant as a number for each output: float64 [outputs]."""
    shape, whole = shape_of(expr), shape_of(call)
    if not is_constant(expr) or shape is None or whole is None or len(shape) > len(whole):
        return None
    array = array_of(expr)
    if array.dtype.kind not in "iuf":
        return None
    full = (1,) * (len(whole) - len(shape)) + shape
    if any(size != 1 for at, size in enumerate(full) if at != channel):
        return None
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (outputs,))


def _cast(ending: Ending, to: str) -> Ending | None:
    if ending.stage == SUMS and to == "float32":
        return attrs.evolve(ending, stage=FLOATS, dtype=to)
    if ending.stage == WHOLE and to in BYTES:
        limits = np.iinfo(to)
        fits = ending.low + ending.zero >= limits.min and ending.high + ending.zero <= limits.max
        return (
            attrs.evolve(ending, stage=DONE, dtype=to)
            if fits and limits.min <= ending.zero <= limits.max
            else None
        )
    return None


def _bound(ending: Ending, name: str, number: float) -> Ending | None:
    if ending.stage not in (FLOATS, WHOLE):
        return None
    if ending.stage == WHOLE and number != np.rint(number):
        return None
    number -= ending.zero
    if name == "maximum":
        return attrs.evolve(ending, low=max(ending.low, number), high=max(ending.high, number))
    return attrs.evolve(ending, low=min(ending.low, number), high=min(ending.high, number))


def _moved(ending: Ending, numbers: np.ndarray) -> Ending | None:
    one = bool((numbers == numbers[0]).all())
    if ending.stage == SUMS:
        return attrs.evolve(ending, start=ending.start + numbers.astype(np.int64))
    if ending.stage == WHOLE:
        whole = one and numbers[0] == np.rint(numbers[0])
        return attrs.evolve(ending, zero=ending.zero + float(numbers[0])) if whole else None
    if ending.stage != FLOATS or (ending.bounded and not one):
        return None
    shift = float(numbers[0]) if one else 0.0
    return attrs.evolve(ending, term=ending.term + numbers, low=ending.low + shift, high=ending.high + shift)


def _scaled(ending: Ending, numbers: np.ndarray | None) -> Ending | None:
    if ending.stage != FLOATS or numbers is None:
        return None
    one = bool((numbers == numbers[0]).all()) and numbers[0] > 0
    if ending.bounded and not one:
        return None
    by = float(numbers[0]) if one else 1.0
    return attrs.evolve(
        ending,
        factor=ending.factor * numbers,
        term=ending.term * numbers,
        low=ending.low * by,
        high=ending.high * by,
    )
