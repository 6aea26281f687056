# SPDX-License-Identifier: Apache-2.0
"""Points are all of them, each once; what they decide is exact."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from hypothesis import given, settings
from uir_tvm.igraph import Affine, affine, points, var

from .strategies import affines

EXTENTS = {"pid": 5, "i": 4, "j.outer": 3}
ENVS = [dict(zip(EXTENTS, values, strict=True)) for values in product(*(range(n) for n in EXTENTS.values()))]


def test_chunks_are_all_points_in_order() -> None:
    for size in (1, 7, 1000):
        seen = [chunk for chunk in points.chunks(list(EXTENTS), EXTENTS, size)]
        assert all(len(chunk["i"]) <= size for chunk in seen)
        joined = {v: np.concatenate([chunk[v] for chunk in seen]).tolist() for v in EXTENTS}
        assert joined == {v: [env[v] for env in ENVS] for v in EXTENTS}


def test_fixed_variables_have_one_value() -> None:
    (chunk,) = points.chunks(["pid", "i"], EXTENTS, 100, {"i": 3})
    assert chunk["i"].tolist() == [3] * 5 and chunk["pid"].tolist() == list(range(5))
    assert list(points.chunks([], EXTENTS, 10)) == [{}]


@settings(max_examples=100, deadline=None)
@given(affines())
def test_extremes_and_divisors_are_exact(e: Affine) -> None:
    found = [e.evaluate(env) for env in ENVS]
    assert points.extremes(e, EXTENTS) == (min(found), max(found))
    assert points.divisor(e, EXTENTS) == math.gcd(*found)
    along = points.extremes_along(e, "i", EXTENTS)
    assert along is not None
    for at in range(EXTENTS["i"]):
        there = [x for x, env in zip(found, ENVS, strict=True) if env["i"] == at]
        assert (int(along[0][at]), int(along[1][at])) == (min(there), max(there))


def test_many_points_leave_bounds() -> None:
    """Beyond the limit intervals serve: they hold the values, and may be wider."""
    extents = {"pid": 1 << 12, "i": 1 << 12}
    wide = (var("pid") + var("i")) // 2 - (var("pid") + var("i")) // 3
    low, high = points.extremes(wide, extents)
    assert low <= 0 and high >= 1365
    assert points.values(wide, extents) is None and points.extremes_along(wide, "i", extents) is None
    assert points.divisor(6 * (var("pid") // 2) + 4 * (var("i") % 7) + affine(8), extents) == 2
