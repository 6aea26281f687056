# SPDX-License-Identifier: Apache-2.0
"""Digits stand for what they say, and leave no quotient of a variable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.igraph import var
from uir_tvm.igraph.space import Size, Space
from uir_tvm.verify.digits import Digits

PID, L, N = var("pid"), var("l"), var("n")
EXTENTS = {"pid": 60, "l": 5}


def _digits(*values):
    return Digits.of(values, EXTENTS, Space({**EXTENTS, "n": Size("n", 1, 100)}))


def _at(digits, pid, loop, n):
    """The values of the digits: a sum's by its radices, the others' by what they divide."""
    env = {"pid": pid, "l": loop, "n": n}
    for name, total in digits.sums.items():
        left = env[name]
        for term in sorted(total.terms, key=lambda term: -term.coeff):
            env[str(term.var)], left = divmod(left, int(term.coeff))
    for value, total in digits.equations:
        high, low = sorted(total.terms, key=lambda term: -term.coeff)
        env[str(high.var)], env[str(low.var)] = divmod(value.evaluate(env), int(high.coeff))
    return env


VALUES = (
    PID // 6 * 7 + PID % 6 * 3,
    PID % 12 // 3 + 5 * (PID // 12) + PID % 3,
    (PID * 5 + L) // 7 - 3 * ((PID * 5 + L) % 7),
    ((PID % 16) % 5) * 3 + (PID % 16) // 5,
    (N - 4 * PID + L) // 8 + (N + 3) // 4,
)


@given(st.sampled_from(VALUES), st.integers(0, 59), st.integers(0, 4), st.integers(1, 100))
def test_an_expression_in_digits_has_the_same_value(value, pid, loop, n):
    digits = _digits(value)
    env = _at(digits, pid, loop, n)
    assert digits.within(value).evaluate(env) == value.evaluate({"pid": pid, "l": loop, "n": n})
    for name, (low, high) in digits.ranges.items():
        assert low <= env[name] <= high


def test_nothing_is_divided_but_sizes():
    for value in VALUES[:4]:
        assert _digits(value).within(value).is_linear
    left = _digits(VALUES[4]).within(VALUES[4])
    assert [str(t.argument) for t in left.terms if t.kind != "var"] == ["n + 3"]


def test_an_expression_without_quotients_stays():
    digits = _digits(PID * 3 + L)
    assert not digits.ranges and digits.within(PID * 3 + L) == PID * 3 + L
