# SPDX-License-Identifier: Apache-2.0
"""Ranges hold for all sizes, and are tight where sizes cancel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.igraph import var
from uir_tvm.igraph.space import Size, Space
from uir_tvm.verify.launch_range import apart, range_at_launch
from uir_tvm.verify.sized_launch import SizedLaunch

from tests.igraph.strategies import affines

SIZE = Size("n", 4, 40, 4)
PID, N = var("pid"), var("n")
ENDS = {"n rows": N, "tiles": (N + 7) // 8, "quarters": N // 4}


def _launch(end):
    space = Space({"n": SIZE})
    return Space({"n": SIZE, "pid": space.range(end)[1]}), SizedLaunch((SIZE,), end)


@pytest.mark.parametrize(
    ("end", "value", "high"),
    [
        (ENDS["n rows"], 8 * PID + 7 - 8 * N, -1),
        (ENDS["tiles"], 64 * PID + (N - 8 * PID - 1) * 8 + 7 - 8 * N, -1),
        (ENDS["quarters"], 4 * PID + 4 - N, 0),
        (ENDS["tiles"], 8 * PID + 1 - N, -3),
    ],
)
def test_sizes_and_the_last_unit_cancel(end, value, high):
    assert range_at_launch(value, *_launch(end))[1] == high


@given(affines(("pid", "n")), st.sampled_from(sorted(ENDS)))
def test_every_value_lies_within(value, name):
    space, launch = _launch(ENDS[name])
    low, high = range_at_launch(value, space, launch)
    for n in range(4, 41, 4):
        for pid in range(ENDS[name].evaluate({"n": n})):
            assert low <= value.evaluate({"n": n, "pid": pid}) <= high


@given(affines(("pid", "n")), st.integers(0, 50), st.integers(4, 40))
def test_taken_apart_it_is_the_same(value, pid, n):
    env = {"pid": pid, "n": n}
    assert apart(value).evaluate(env) == value.evaluate(env)
