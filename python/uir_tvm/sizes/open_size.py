# SPDX-License-Identifier: Apache-2.0
"""Sizes of which only names are known, which compute and compare as whole numbers do.

An `OpenSize` is a polynomial in the sizes that a model leaves open, with whole quotients and remainders of
such. What is asked of it (is it 0, is it less than another) its space answers (`size_space.SizeSpace`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from .open_bounds import Monomial
from .open_terms import Terms, long_division, over_term, terms_text


class Symbols(Protocol):
    """What sizes ask of the space that they are of (`size_space.SizeSpace`)."""

    representatives: dict[str, int]
    needs: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """All symbols."""

    def symbol(self, name: str) -> OpenSize:
        """The size of this name."""

    def names_in(self, size: OpenSize) -> set[str]:
        """The symbols of a size."""

    def expression(self, size: OpenSize) -> Any:
        """A size as TVM takes it."""

    def is_found(self, size: OpenSize) -> bool:
        """Whether a size is known only once the model runs."""

    def is_zero(self, size: OpenSize) -> bool:
        """Whether it is 0."""

    def agree(self, a: AnySize, b: AnySize) -> bool:
        """Whether sizes are equal, where the model means nothing else."""

    def is_negative(self, size: OpenSize) -> bool:
        """Whether it is less than 0."""

    def bounds(self, size: OpenSize) -> tuple[int | None, int | None]:
        """A number that it is never less than, and one that it never exceeds; None where none is known."""

    def ends(self, size: AnySize, limits: Mapping[str, int]) -> tuple[int | None, int | None]:
        """The same, where some symbols are no more than a number, and what the model finds may be nothing."""

    def part(self, operation: str, left: OpenSize | int, right: OpenSize | int) -> OpenSize:
        """A quotient, remainder or minimum that no polynomial is."""

    def value(self, size: OpenSize, sizes: Mapping[str, int]) -> int:
        """The number that a size is, for a number for each symbol."""


class OpenSize:
    """A whole number in terms of the sizes that a model leaves open.

    It adds, multiplies, divides and compares as an ``int``; what comes out without a symbol is one. It has no
    ``__int__`` and no ``__index__``: code that needs a number cannot take it for one.
    """

    __slots__ = ("terms", "space", "_hash")

    def __init__(self, terms: Terms, space: Symbols) -> None:
        self.terms, self.space = terms, space
        self._hash = hash(terms)

    def __str__(self) -> str:
        return terms_text(self.terms)

    __repr__ = __str__

    def __hash__(self) -> int:
        return self._hash

    def __tvm_ffi_object__(self) -> Any:
        return self.space.expression(self)

    @property
    def names(self) -> set[str]:
        """The symbols that it depends on."""
        return self.space.names_in(self)

    @property
    def constant(self) -> int:
        """What has no symbol in it."""
        return next((factor for monomial, factor in self.terms if not monomial), 0)

    def _made(self, terms: Mapping[Monomial, int]) -> Any:
        kept = tuple(sorted((m, f) for m, f in terms.items() if f))
        if not kept or (len(kept) == 1 and not kept[0][0]):
            return kept[0][1] if kept else 0
        return OpenSize(kept, self.space)

    def terms_of(self, other: Any) -> Terms | None:
        """Another size as a polynomial; None of what is none."""
        if isinstance(other, OpenSize):
            return other.terms
        number = _whole(other)
        return None if number is None else ((((), number),) if number else ())

    def __neg__(self) -> Any:
        return self._made({monomial: -factor for monomial, factor in self.terms})

    def __add__(self, other: Any) -> Any:
        terms = self.terms_of(other)
        if terms is None:
            return NotImplemented
        total = dict(self.terms)
        for monomial, factor in terms:
            total[monomial] = total.get(monomial, 0) + factor
        return self._made(total)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else self + -other

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else -self + other

    def __mul__(self, other: Any) -> Any:
        terms = self.terms_of(other)
        if terms is None:
            return NotImplemented
        total: dict[Monomial, int] = {}
        for (mine, factor), (its, number) in itertools.product(self.terms, terms):
            monomial = tuple(sorted(mine + its))
            total[monomial] = total.get(monomial, 0) + factor * number
        return self._made(total)

    __rmul__ = __mul__

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _divided(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _divided(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _divided(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _divided(other, self)[0]

    def __mod__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _divided(self, other)[1]

    def __rmod__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _divided(other, self)[1]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OpenSize) and other.terms == self.terms:
            return True
        if self.terms_of(other) is None:
            return NotImplemented
        difference = self - other
        return difference.space.is_zero(difference) if isinstance(difference, OpenSize) else not difference

    def __bool__(self) -> bool:
        return self != 0

    def __lt__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _is_negative(self - other)

    def __gt__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else _is_negative(other - self)

    def __le__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else not _is_negative(other - self)

    def __ge__(self, other: Any) -> Any:
        return NotImplemented if self.terms_of(other) is None else not _is_negative(self - other)


#: A size of a shape: a number, or what a model leaves open.
AnySize = Any


def _whole(value: Any) -> int | None:
    """A whole number of Python or NumPy; None for others: what has an ``__index__`` may be no number yet."""
    return int(value) if isinstance(value, int | np.integer) else None


def _is_negative(size: OpenSize | int) -> bool:
    return size.space.is_negative(size) if isinstance(size, OpenSize) else size < 0


def _divided(left: OpenSize | int, right: OpenSize | int) -> tuple[Any, Any]:
    """Whole quotient and remainder."""
    some = left if isinstance(left, OpenSize) else right
    assert isinstance(some, OpenSize)
    if isinstance(left, OpenSize) and isinstance(right, OpenSize):
        factor = _common_factor(left, right)
        if factor is not None:
            _not_zero(left, right)
            return factor, 0
    terms = some.terms_of(left) or ()
    divisor = some.terms_of(right) or ()
    quotient: Any = 0
    rest: Any = left
    if len(divisor) > 1:
        over, remaining = long_division(terms, divisor)
        if not remaining:
            _not_zero(left, right)
            return some._made(over), 0
    if len(divisor) == 1:
        over, remaining = over_term(terms, divisor[0])
        quotient, rest = some._made(over), some._made(remaining)
    if isinstance(rest, int) and isinstance(right, int):
        return quotient + rest // right, rest % right
    if isinstance(rest, int) and rest == 0:
        return quotient, 0
    if _surely_within(rest, right, some.space):
        return quotient, rest
    try:
        return quotient + some.space.part("div", rest, right), some.space.part("mod", rest, right)
    except ArithmeticError:
        # parts of the dividend below 0: of all of it together
        if not _surely_within(-left, 1 - left, some.space) or not _surely_within(0, right, some.space):
            return some.space.part("div", left, right), some.space.part("mod", left, right)
        up = (right - left - 1) // right
        return -up, left + up * right


def _not_zero(left: OpenSize | int, right: OpenSize | int) -> None:
    """Ask the space whether a divisor is 0, so that it becomes a condition that it is not."""
    if right == 0:
        raise ArithmeticError(f"{left} is divided by {right}, which may be 0")


def _common_factor(left: OpenSize, right: OpenSize) -> int | None:
    """The number by which one polynomial is a multiple of the other; None where it is none."""
    if [m for m, _ in left.terms] != [m for m, _ in right.terms]:
        return None
    (a, b), *others = [(f, g) for (_, f), (_, g) in zip(left.terms, right.terms, strict=True)]
    if a % b:
        return None
    return a // b if all(f == a // b * g for f, g in others) else None


def _surely_within(rest: OpenSize | int, right: OpenSize | int, space: Symbols) -> bool:
    """Whether 0 <= rest < right for all sizes."""

    def surely(size: OpenSize | int) -> bool:
        least = space.bounds(size)[0] if isinstance(size, OpenSize) else size
        return least is not None and least >= 0

    return surely(rest) and surely(right - rest - 1)


def expression(size: AnySize) -> Any:
    """A size as TVM takes it: in terms of what stands for the symbols; a number is itself."""
    return size.space.expression(size) if isinstance(size, OpenSize) else size


def expressions(shape: Iterable[AnySize]) -> list[Any]:
    """The sizes of a shape as TVM takes them."""
    return [expression(size) for size in shape]


def at(size: AnySize, sizes: Mapping[str, int]) -> int:
    """A size for these numbers; a number is itself."""
    return size.space.value(size, sizes) if isinstance(size, OpenSize) else size
