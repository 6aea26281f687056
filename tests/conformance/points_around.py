# SPDX-License-Identifier: Apache-2.0
"""Sizes at which something may go wrong: one, two, around tiles, a prime, the greatest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: How far the values of neighbouring sizes are apart: one is at a tile's end while others are not.
APART = 3


def values_around(tiles: Sequence[int], high: int) -> list[int]:
    """The values of one size, of which tiles take so many elements."""
    around = [tile + d for tile in tiles for d in (-1, 0, 1)]
    primes = (p for p in range(high - 1, 1, -1) if all(p % d for d in range(2, int(p**0.5) + 1)))
    return list(dict.fromkeys(v for v in (1, 2, *around, next(primes, 1), high) if 1 <= v <= high))


def staggered(values: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Points of several sizes: each takes all its values, and others are elsewhere meanwhile."""
    return [
        {name: own[(turn + APART * k) % len(own)] for k, (name, own) in enumerate(values.items())}
        for turn in range(max(map(len, values.values())))
    ]
