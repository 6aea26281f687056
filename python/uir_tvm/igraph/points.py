# SPDX-License-Identifier: Apache-2.0
"""All values of some variables as arrays, and what looking at few of them decides exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .affine import Affine
from .space import Size, Space

#: Values of the variables up to which an expression is evaluated at all of them.
FEW_POINTS = 1 << 16

Extents = Mapping[str, int]
#: What is known of variables: extents, and sizes of a launch.
Variables = Mapping[str, int | Size]


def number(variables: Sequence[str] | set[str], extents: Extents) -> int:
    """How many values variables have together."""
    return math.prod(extents[v] for v in variables)


def chunks(
    variables: Sequence[str], extents: Extents, size: int, fixed: Mapping[str, int] | None = None
) -> Iterator[dict[str, np.ndarray]]:
    """Every value of some variables (mixed radix, the last fastest), at most ``size`` at a time.

    Parameters
    ----------
    variables : sequence of str
    extents : mapping of str to int
        Every variable runs over ``[0, extent)``.
    size : int
    fixed : mapping of str to int, optional
        Variables that have one value only.

    Yields
    ------
    dict of str to np.ndarray of int64
        By variable, arrays of one length; of no variables one empty dict.
    """
    fixed = fixed or {}
    radices = [1 if v in fixed else extents[v] for v in variables]
    total = math.prod(radices)
    for start in range(0, total, size):
        index = np.arange(start, min(start + size, total), dtype=np.int64)
        env: dict[str, np.ndarray] = {}
        for name, radix in zip(reversed(variables), reversed(radices), strict=True):
            env[name] = index % radix + fixed.get(name, 0)
            index = index // radix
        yield env


def grid(variables: Sequence[str], extents: Extents) -> dict[str, np.ndarray]:
    """Every value of some variables as arrays that broadcast to one axis a variable."""
    axes = np.meshgrid(*(np.arange(extents[v]) for v in variables), indexing="ij", sparse=True)
    return dict(zip(variables, axes, strict=True))


def values(value: Affine, variables: Variables) -> np.ndarray | None:
    """All values of an expression, an axis for each variable in order of names; None where they are
    many, as those of sizes are.
    """
    names = value.variables()
    extents = {name: known for name in names if isinstance(known := variables[name], int)}
    if len(extents) < len(names) or number(names, extents) > FEW_POINTS:
        return None
    return np.asarray(value.values(grid(names, extents)))


def extremes(value: Affine, extents: Variables) -> tuple[int, int]:
    """Bounds of an expression with each variable in ``[0, extent)``, extents being positive, or a size.

    Both are reached, unless floor or mod terms range over more than `FEW_POINTS` points, or there are sizes:
    then they are those of intervals, and may be wider than the truth.
    """
    found = None if value.is_linear else values(value, extents)
    if found is None:
        return Space(extents).range(value)
    return int(found.min()), int(found.max())


def extremes_along(value: Affine, variable: str, extents: Variables) -> tuple[np.ndarray, np.ndarray] | None:
    """As `extremes` for every value of one variable: (least, greatest), each of shape (extent,).

    None where floor or mod terms range over more than `FEW_POINTS` points, or over sizes.
    """
    extent = extents[variable]
    assert isinstance(extent, int)
    if value.is_linear:
        low, high = Space({**extents, variable: 1}).range(value)
        along = value.coefficient(variable) * np.arange(extent)
        return low + along, high + along
    found = values(value, extents)
    if found is None:
        return None
    names = value.variables()
    if variable not in names:
        return np.full(extent, found.min()), np.full(extent, found.max())
    others = tuple(k for k, name in enumerate(names) if name != variable)
    return found.min(axis=others), found.max(axis=others)


def divisor(value: Affine, extents: Variables) -> int:
    """The greatest number that divides all values of an expression; 0 where it is always 0.

    Where floor or mod terms range over more than `FEW_POINTS` points, or there are sizes, it may be a
    divisor of the greatest.
    """
    found = None if value.is_linear else values(value, extents)
    if found is None:
        return math.gcd(*Space(extents).congruence(value))
    return int(np.gcd.reduce(found, axis=None))
