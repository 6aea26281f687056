# SPDX-License-Identifier: Apache-2.0
"""Algebra on expressions agrees with Python's integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.igraph import Affine, affine, var
from uir_tvm.igraph.bound import compile_affine

from .strategies import affines

ENVS = st.fixed_dictionaries({name: st.integers(-500, 500) for name in ("pid", "i", "j.outer")})


@given(affines(), affines(), st.integers(-9, 9), st.integers(1, 12), ENVS)
def test_operators_agree_with_integers(a: Affine, b: Affine, k: int, d: int, env: dict[str, int]) -> None:
    x, y = a.evaluate(env), b.evaluate(env)
    assert (a + b).evaluate(env) == x + y
    assert (a - b).evaluate(env) == x - y
    assert (a * k).evaluate(env) == x * k
    assert (a // d).evaluate(env) == x // d
    assert (a % d).evaluate(env) == x % d
    assert (d * (a // d) + a % d).evaluate(env) == x


@given(affines(), ENVS)
def test_compiled_expression_agrees_with_the_node(a: Affine, env: dict[str, int]) -> None:
    assert compile_affine(a)(env) == a.evaluate(env)


@given(affines(), affines(("i",)), ENVS)
def test_substitution_is_evaluation_of_the_replacement(a: Affine, b: Affine, env: dict[str, int]) -> None:
    assert a.substitute({"pid": b}).evaluate(env) == a.evaluate({**env, "pid": b.evaluate(env)})


@given(affines(), affines())
def test_equal_sums_are_one_node_whatever_their_order(a: Affine, b: Affine) -> None:
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)
    assert (a + b) - b == a


def test_quotient_and_remainder_fold() -> None:
    x = var("pid") + 3
    assert 4 * (x // 4) + x % 4 == x
    assert (var("pid") // 2) // 3 == var("pid") // 6
    assert (6 * var("i") + var("pid")) // 3 == 2 * var("i") + var("pid") // 3


def test_queries() -> None:
    e = 4096 * var("lid") + 64 * (var("pid") // 3) + 5
    assert e.variables() == ["lid", "pid"]
    assert e.coefficient("lid") == 4096
    assert e.coefficient("pid") == 0
    assert not e.is_constant
    assert affine(7) == 7


def test_bad_divisor_and_unbound_variable_are_errors() -> None:
    with pytest.raises(ValueError, match="positive constant"):
        var("i") // 0
    with pytest.raises(ValueError, match="no value for the variable i"):
        var("i").evaluate({})
