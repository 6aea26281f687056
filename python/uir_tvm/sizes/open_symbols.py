# SPDX-License-Identifier: Apache-2.0
"""The symbols of a model that leaves sizes open, and a value for each that stands for all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping

import attrs

from .symbolic_shapes import Range, Sizes

#: Where representatives are looked for from: sizes that nothing else in a model is likely to have.
UNLIKELY = 53
#: Sizes below this are compiled by themselves: an axis of 0 has no elements.
LEAST = 1
#: The same where an axis of 1 may mean something else, as in what drops such axes.
LEAST_OF_MANY = 2
#: What may have to divide a size, those first that more others divide.
FACTORS = (4, 2, 8, 3, 6, 16, 5, 7, 12, 32, 14, 64)
#: Sizes of which a common divisor is looked for.
FEW = 96
#: Primes of each way that are looked at.
MOST_OF_A_WAY = 12


@attrs.frozen
class OpenSymbol:
    """A size that a model leaves open: its name, its range, and the value that stands for all.

    Attributes
    ----------
    name : str
    low : int
    high : int or None
    representative : int
    variable : str
        Its name in Relax, where that is another.
    multiple : int
        What divides all its values.
    equals : str or int
        The symbol of which it always has the value, or a number that it always is; empty: it has a value of
        its own.
    """

    name: str
    low: int
    high: int | None
    representative: int
    variable: str = ""
    multiple: int = 1
    equals: str | int = ""


def symbols_for(
    ranges: Mapping[str, Range],
    variables: Mapping[str, str],
    near: Sizes | None = None,
    holds: Callable[[Sizes], bool] | None = None,
    least: int = LEAST_OF_MANY,
    equal: Mapping[str, str | int] | None = None,
) -> list[OpenSymbol]:
    """Symbols for sizes of at least ``least``.

    Parameters
    ----------
    ranges : mapping of str to (int, int or None)
        Of every symbol, both ends included.
    variables : mapping of str to str
        The name of each symbol in Relax.
    near : mapping of str to int, optional
        Their representatives; default: primes of the ranges.
    holds : callable, optional
        Of a size for each symbol, and true of ``near``: whether representatives may be these. Then they are
        primes, but for a symbol of which no prime may be.
    least : int
        `LEAST` or `LEAST_OF_MANY`.
    equal : mapping of str to str or int, optional
        Symbols that have the value of another, which is none of them, or always are a number.
    """
    leaders = equal or {}
    ends = {name: (max(low, least), high) for name, (low, high) in ranges.items()}
    numbers = {name: value for name, value in leaders.items() if isinstance(value, int)}
    sizes, taken, multiples = {**(near or {}), **numbers}, set[int](numbers.values()), dict[str, int]()
    for name, (low, high) in ends.items() if near is None or holds is not None else ():
        if name in leaders:
            continue
        alike = [name, *(other for other, leader in leaders.items() if leader == name)]
        free = iter([number for number in _primes(low, high, sizes.get(name)) if number not in taken])
        if holds is not None:
            some = itertools.chain(free, _multiples(low, high, taken))
            free = (number for number in some if holds({**sizes, **dict.fromkeys(alike, number)}))
        sizes |= dict.fromkeys(alike, next(free, sizes.get(name, low)))
        taken.add(sizes[name])
        if holds is not None and not _is_prime(sizes[name]):
            few = range(low, low + FEW if high is None else min(high, low + FEW) + 1)
            some_hold = [each for each in few if holds({**sizes, **dict.fromkeys(alike, each)})]
            known = sizes[name], (near or sizes)[name]
            multiples[name] = max(math.gcd(*known, *some_hold), 1) if some_hold else 1
    return [
        OpenSymbol(
            name, low, high, sizes[name], variables[name], multiples.get(name, 1), leaders.get(name, "")
        )
        for name, (low, high) in ends.items()
    ]


def representative_in(ends: Range, taken: Iterable[int]) -> int:
    """A prime of a range that is none of some numbers; else the range's greatest, or its least number."""
    low, high = max(ends[0], LEAST_OF_MANY), ends[1]
    found = (number for number in _primes(low, high, None) if number not in set(taken))
    return next(found, low if high is None else high)


def _primes(low: int, high: int | None, near: int | None) -> list[int]:
    """Primes of a range, first those of at least `UNLIKELY`."""
    first = max(low, UNLIKELY)
    ways: list[Iterable[int]] = [
        range(first, 16 * first if high is None else min(high, 16 * first) + 1),
        range(min(high or first, 4 * first), low - 1, -1),
    ]
    if near is not None:
        ways += [range(near, 2 * near + 1 if high is None else min(high, 2 * near) + 1)]
    found: list[int] = []
    for way in ways:
        found += itertools.islice(filter(_is_prime, way), MOST_OF_A_WAY)
    return list(dict.fromkeys(found))


def _multiples(low: int, high: int | None, taken: Iterable[int]) -> list[int]:
    """Small numbers times primes, for sizes that a number has to divide."""
    primes = _primes(LEAST_OF_MANY, None, None)[:MOST_OF_A_WAY]
    found = (factor * prime for factor in FACTORS for prime in primes)
    within = (each for each in found if low <= each and (high is None or each <= high))
    return [each for each in within if each not in set(taken)]


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))
