# SPDX-License-Identifier: Apache-2.0
"""Least and greatest value of an expression over pid and loops."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..igraph.affine import Affine
from ..verify.expr import Expr, expr

#: Values of the variables up to which an expression with floor or mod is enumerated.
MAX_POINTS = 1 << 16


def value_range(value: Affine, extents: Mapping[str, int]) -> tuple[int, int]:
    """Bounds of an expression with each variable in ``[0, extent)``, extents being positive.

    Both are reached, unless floor or mod terms range over more than `MAX_POINTS` points: then they are
    those of interval arithmetic, and may be wider than the truth.
    """
    plain = expr(value)
    if _is_linear(plain) or _points(plain, extents) > MAX_POINTS:
        return plain.interval(extents)
    values = plain.values(_grid(sorted(plain.variables), extents))
    return int(np.min(values)), int(np.max(values))


def range_along(
    value: Affine, variable: str, extents: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """As `value_range` for every value of one variable: (least, greatest), each of shape (extent,).

    None where floor or mod terms range over more than `MAX_POINTS` points.
    """
    plain = expr(value)
    if _is_linear(plain):
        step = sum(a.coeff for a in plain.atoms if a.var == variable)
        low, high = plain.interval({**extents, variable: 1})
        along = step * np.arange(extents[variable])
        return low + along, high + along
    if _points(plain, extents) > MAX_POINTS:
        return None
    others = sorted(plain.variables - {variable})
    values = np.asarray(plain.values(_grid([variable, *others], extents)))
    values = np.broadcast_to(values, [extents[v] for v in (variable, *others)]).reshape(extents[variable], -1)
    return values.min(axis=1), values.max(axis=1)


def _is_linear(value: Expr) -> bool:
    return all(a.inner is None for a in value.atoms)


def _points(value: Expr, extents: Mapping[str, int]) -> int:
    return math.prod(extents[v] for v in value.variables)


def _grid(variables: list[str], extents: Mapping[str, int]) -> dict[str, np.ndarray]:
    axes = np.meshgrid(*(np.arange(extents[v]) for v in variables), indexing="ij", sparse=True)
    return dict(zip(variables, axes, strict=True))
