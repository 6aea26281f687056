# SPDX-License-Identifier: Apache-2.0
"""The symbols of a model that leaves sizes open, and a value for each that stands for all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import attrs

from .symbolic_shapes import Range, Sizes

#: Where representatives are looked for from: sizes that nothing else in a model is likely to have.
UNLIKELY = 53
#: Sizes below this are compiled by themselves: an axis of 1 broadcasts, one of 0 has no elements.
LEAST = 2


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
    """

    name: str
    low: int
    high: int | None
    representative: int
    variable: str = ""


def symbols_for(
    ranges: Mapping[str, Range], variables: Mapping[str, str], near: Sizes | None = None
) -> list[OpenSymbol]:
    """Symbols for sizes of at least `LEAST`.

    Parameters
    ----------
    ranges : mapping of str to (int, int or None)
        Of every symbol, both ends included.
    variables : mapping of str to str
        The name of each symbol in Relax.
    near : mapping of str to int, optional
        Their representatives; default: primes of the ranges.
    """
    found: list[OpenSymbol] = []
    for name, (low, high) in ranges.items():
        low = max(low, LEAST)
        taken = {symbol.representative for symbol in found}
        value = _prime(low, high, taken) if near is None else near[name]
        found.append(OpenSymbol(name, low, high, value, variables[name]))
    return found


def _prime(low: int, high: int | None, taken: set[int]) -> int:
    """A prime of a range that is not taken, of at least `UNLIKELY` where there is one; else any number."""
    first = max(low, UNLIKELY)
    above = range(first, 2 * first + len(taken) * first if high is None else min(high, 4 * first) + 1)
    below = range(high or first, low - 1, -1)
    for number in itertools.chain(above, below):
        if number not in taken and all(number % factor for factor in range(2, math.isqrt(number) + 1)):
            return number
    return low
