# SPDX-License-Identifier: Apache-2.0
"""The plain form of expressions agrees with the native one, and its intervals hold every value."""

from __future__ import annotations

import islpy
import numpy as np
from hypothesis import given, settings
from uir_tvm.igraph import affine, var
from uir_tvm.verify.expr import expr

from .test_bounds import expressions

EXTENTS = {"pid": 5, "k": 4}
POINTS = [{"pid": p, "k": k} for p in range(5) for k in range(4)]


@settings(max_examples=100, deadline=None)
@given(expressions())
def test_values_intervals_and_isl_text(e):
    plain = expr(e)
    values = [e.evaluate(env) for env in POINTS]
    arrays = {v: np.array([env[v] for env in POINTS]) for v in EXTENTS}
    assert np.broadcast_to(plain.values(arrays), len(POINTS)).tolist() == values
    low, high = plain.interval(EXTENTS)
    assert low <= min(values) and max(values) <= high
    assert plain.variables == set(e.variables())
    at = islpy.PwAff(f"{{ [p, q] -> [({plain.isl_text({'pid': 'p', 'k': 'q'})})] }}")
    for env, value in zip(POINTS[::7], values[::7], strict=True):
        assert at.eval(_point(env)).to_python() == value


def _point(env: dict[str, int]) -> islpy.Point:
    return islpy.Set(f"{{ [{env['pid']}, {env['k']}] }}").sample_point()


def test_intervals_are_tight_where_usual_offsets_need_it():
    """Remainders of multiples, remainders within one period, and quotients."""
    pid = var("pid")
    assert expr((pid * 4) % 16).interval({"pid": 99}) == (0, 12)
    assert expr((pid + 1) % 8).interval({"pid": 4}) == (1, 4)
    assert expr(pid // 4).interval({"pid": 10}) == (0, 2)
    assert expr(affine(7)).interval({}) == (7, 7)
