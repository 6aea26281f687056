# SPDX-License-Identifier: Apache-2.0
"""What is asked of sizes that may be open or numbers, and is then right for all sizes."""

from __future__ import annotations

import collections
import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from .open_size import AnySize, OpenSize


def structure(value: Any) -> Any:
    """Nested tuples of sizes in a form that is equal where they are equal for all sizes."""
    if isinstance(value, tuple):
        return tuple(map(structure, value))
    return ("open", value.terms) if isinstance(value, OpenSize) else value


def same(a: Any, b: Any) -> bool:
    """Whether sizes, or shapes, are equal for all sizes: where "no" is right too, nothing need be asked."""
    return bool(structure(a) == structure(b))


def is_one(size: AnySize) -> bool:
    """Whether a size is 1 for all sizes: one that is at least 1, and may be, is taken as any other.

    What is right for an axis of any size is right for one of 1, which only needs less.
    """
    if isinstance(size, OpenSize) and _at_least_one(size):
        return False
    return bool(size == 1)


def is_many(size: AnySize) -> bool:
    """Whether an axis has more elements than one, or may have: the opposite of `is_one` but for 0."""
    if isinstance(size, OpenSize) and _at_least_one(size):
        return True
    return bool(size > 1)


def _at_least_one(size: OpenSize) -> bool:
    low, _ = size.space.bounds(size)
    return low is not None and low >= 1


def divides(divisor: AnySize, size: AnySize) -> bool:
    """Whether one divides the other; of open sizes whether it does whatever they are."""
    if isinstance(divisor, int) and divisor == 0:
        return isinstance(size, int) and size == 0
    rest = size % divisor
    return isinstance(rest, int) and rest == 0


def least(a: AnySize, b: AnySize) -> AnySize:
    """The minimum; of open sizes one that is known when they are."""
    if not isinstance(a, OpenSize) and not isinstance(b, OpenSize):
        return min(a, b)
    difference = b - a
    if not isinstance(difference, OpenSize):
        return a if difference >= 0 else b
    low, high = difference.space.bounds(difference)
    if low is not None and low >= 0:
        return a
    return b if high is not None and high <= 0 else difference.space.part("min", a, b)


def most(a: AnySize, b: AnySize) -> AnySize:
    """The maximum."""
    return a + b - least(a, b)


def is_open(sizes: Iterable[AnySize]) -> bool:
    """Whether a shape has a size that is no number."""
    return any(isinstance(size, OpenSize) for size in sizes)


def representative(size: AnySize) -> int:
    """The number that stands for a size where no answer depends on it: in estimates."""
    return size.space.value(size, size.space.representatives) if isinstance(size, OpenSize) else size


def quotient(a: AnySize, b: AnySize) -> AnySize:
    """The quotient of whole numbers, without what is behind the point.

    Raises
    ------
    ArithmeticError
        Of open sizes that may be below 0.
    """
    if b > 0 and a >= 0:
        return a // b
    if isinstance(a, OpenSize) or isinstance(b, OpenSize):
        raise ArithmeticError(f"{a} / {b} may be of numbers below 0")
    return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


def common_divisor(a: AnySize, b: AnySize) -> AnySize:
    """The greatest common divisor; of open sizes one that divides both whatever they are."""
    if not isinstance(a, OpenSize) and not isinstance(b, OpenSize):
        return math.gcd(a, b)
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    if isinstance(a, OpenSize) and isinstance(b, OpenSize) and a.terms == b.terms:
        return a
    some = a if isinstance(a, OpenSize) else b
    terms = [*(some.terms_of(a) or ()), *(some.terms_of(b) or ())]
    shared = collections.Counter(terms[0][0])
    for monomial, _ in terms[1:]:
        shared &= collections.Counter(monomial)
    size = functools.reduce(operator.mul, map(some.space.symbol, shared.elements()), 1)
    return size * math.gcd(*(factor for _, factor in terms))


def divisor_of(size: AnySize) -> int:
    """A number of at least 1 that divides a size whatever it is."""
    factors = [factor for _, factor in size.terms] if isinstance(size, OpenSize) else [size]
    return max(math.gcd(*factors), 1)


def agree(a: AnySize, b: AnySize) -> bool:
    """Whether sizes are equal where a model means that they are (`size_space.SizeSpace.agree`)."""
    for size in (a, b):
        if isinstance(size, OpenSize):
            return size.space.agree(a, b)
    return a == b


def broadcast_shapes(*shapes: Sequence[AnySize]) -> tuple[AnySize, ...]:
    """NumPy's shape of what shapes broadcast to.

    Raises
    ------
    ValueError
        They do not.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result: list[AnySize] = []
    for extents in zip(*padded, strict=True):
        wide = [extent for extent in extents if not is_one(extent)]
        if not all(agree(extent, wide[0]) for extent in wide[1:]):
            raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(wide[0] if wide else 1)
    return tuple(result)
