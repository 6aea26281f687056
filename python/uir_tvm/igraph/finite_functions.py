# SPDX-License-Identifier: Apache-2.0
"""What scalar functions do to values of the finite field, as far as the field knows them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import finite_field as field

#: Largest exponent that is multiplied out.
WHOLE_POWERS = 64


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


def pows(x: np.ndarray, number: float, exponent: int) -> np.ndarray:
    """x ** number: exact for small integers, as the square root where that is meant."""
    if number == int(number) and abs(number) <= WHOLE_POWERS:
        return field.power(x, int(number))
    if abs(number) == 0.5:
        return rsqrt(x) if number < 0 else field.mix(field.code_of("sqrt"), x)
    return field.mix(field.code_of("pow"), x, np.broadcast_to(np.int64(exponent), x.shape))


def ordered(
    test: Callable[[np.ndarray, np.ndarray], np.ndarray], beside_nan: bool = False
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A comparison of the order of values; beside NaN it is what is said."""

    def compare(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nan = (a == field.NAN) | (b == field.NAN)
        return np.where(nan, beside_nan, test(field.rank(a), field.rank(b)))

    return compare
