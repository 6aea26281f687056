# SPDX-License-Identifier: Apache-2.0
"""What is asked of sizes that may be open or numbers, and is then right for all sizes."""

from __future__ import annotations

import collections
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .open_size import AnySize, OpenSize
from .symbolic_shapes import FUNCTIONS


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

    What is right for an axis of any size is right for one of 1, which only needs less. So is one that the
    model finds, which may be nothing too.
    """
    if isinstance(size, OpenSize) and _is_any(size):
        return False
    return bool(size == 1)


def is_many(size: AnySize) -> bool:
    """Whether an axis has more elements than one, or may have: the opposite of `is_one` but for 0."""
    if isinstance(size, OpenSize) and _is_any(size):
        return True
    return bool(size > 1)


def _is_any(size: OpenSize) -> bool:
    """Whether an axis has elements for all sizes, or as many as the model finds."""
    low, _ = size.space.bounds(size)
    return (low is not None and low >= 1) or size.space.is_found(size)


def may_exceed(a: AnySize, b: AnySize, filled: Iterable[AnySize] = ()) -> bool:
    """Whether a size is more than another; of sizes that the model finds whether it may be.

    Nothing of what a model finds is decided by what stands for it: "no" is right whatever is found.

    Parameters
    ----------
    a, b : int or OpenSize
    filled : iterable of int or OpenSize
        Sizes that are at least 1 wherever it matters: extents of what is read.
    """
    room = b - a
    if not isinstance(room, OpenSize) or not room.space.is_found(room):
        return bool(a > b)
    rests = [room, *(_beside(room, size) for size in filled if isinstance(size, OpenSize))]
    lows = [room.space.ends(rest, {})[0] for rest in rests]
    return not any(low is not None and low >= 0 for low in lows)


def _beside(size: OpenSize, filled: OpenSize) -> AnySize:
    """A size without as much of another one as it has, but for 1 of each: no more than it where that is 1."""
    unit = filled // divisor_of(filled)
    monomial, factor = next((m, f) for m, f in unit.terms if m)
    times = dict(size.terms).get(monomial, 0) // factor
    return size - times * (unit - 1) if times > 0 else size


def is_found(*sizes: AnySize) -> bool:
    """Whether one of some sizes is known only once the model runs."""
    return any(isinstance(size, OpenSize) and size.space.is_found(size) for size in sizes)


def divides(divisor: AnySize, size: AnySize) -> bool:
    """Whether one divides the other; of open sizes whether it does whatever they are."""
    if isinstance(divisor, int) and divisor == 0:
        return isinstance(size, int) and size == 0
    try:
        rest = size % divisor
    except ArithmeticError:  # by what may be nothing
        return False
    return isinstance(rest, int) and rest == 0


def least(a: AnySize, b: AnySize) -> AnySize:
    """The minimum; of open sizes one that is known when they are."""
    if not isinstance(a, OpenSize) and not isinstance(b, OpenSize):
        return min(a, b)
    difference = b - a
    if not isinstance(difference, OpenSize):
        return a if difference >= 0 else b
    space = difference.space
    low, high = space.ends(difference, {}) if space.is_found(difference) else space.bounds(difference)
    if low is not None and low >= 0:
        return a
    return b if high is not None and high <= 0 else space.part("min", a, b)


def most(a: AnySize, b: AnySize) -> AnySize:
    """The maximum."""
    return a + b - least(a, b)


def _of_found(known: Callable[..., AnySize], found: Callable[[AnySize, AnySize], AnySize]) -> Any:
    """A function of sizes, for which another is right where one of them is found."""
    return lambda *sizes: functools.reduce(found, sizes) if is_found(*sizes) else known(*sizes)


#: What expressions of sizes may call, where sizes may be found: nothing is decided by what stands for those.
OPEN_FUNCTIONS = FUNCTIONS | {
    **dict.fromkeys(("min", "Min"), _of_found(min, least)),
    **dict.fromkeys(("max", "Max"), _of_found(max, most)),
}


def is_open(sizes: Iterable[AnySize]) -> bool:
    """Whether a shape has a size that is no number."""
    return any(isinstance(size, OpenSize) for size in sizes)


def representative(size: AnySize) -> int:
    """The number that stands for a size where no answer depends on it: in estimates."""
    return size.space.value(size, size.space.representatives) if isinstance(size, OpenSize) else size


def ends_of(size: AnySize) -> tuple[int | None, int | None]:
    """The least and the greatest number that a size may be; None where none is known."""
    return size.space.bounds(size) if isinstance(size, OpenSize) else (size, size)


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
