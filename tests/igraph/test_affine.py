# SPDX-License-Identifier: Apache-2.0
"""Algebra on expressions agrees with Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.errors import IGraphError
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


def test_equal_values_have_equal_hashes() -> None:
    """A constant expression equals its number, so that a dict or set finds one by the other."""
    assert affine(7) in {7} and 7 in {affine(7)}
    assert len({affine(-3), -3, var("i") - var("i") - 3}) == 1


BIG = 2**62


@pytest.mark.parametrize(
    "made",
    [
        lambda: affine(2**63),
        lambda: affine(-(2**63) - 1),
        lambda: affine(BIG) + affine(BIG),
        lambda: affine(-BIG) - affine(BIG) - 1,
        lambda: BIG * var("i") + BIG * var("i"),
        lambda: (BIG * var("i")) * 2,
        lambda: affine(BIG) * -3,
        lambda: var("i") * 2**63,
        lambda: var("i") // 2**64,
        lambda: -affine(-(2**63)),
        lambda: (4 * var("i")).substitute({"i": BIG * var("j")}),
        lambda: (4 * var("i")).evaluate({"i": BIG}),
        lambda: (BIG * var("i") + BIG * var("j")).evaluate({"i": 1, "j": 1}),
        lambda: var("i").evaluate({"i": 2**63}),
    ],
)
def test_what_leaves_64_bits_is_refused(made: Callable[[], object]) -> None:
    """By name, wherever it happens: an address that wraps is another address."""
    with pytest.raises(IGraphError, match="64 bits"):
        made()


def test_the_ends_of_64_bits_are_numbers() -> None:
    low, high = -(2**63), 2**63 - 1
    for number in (low, high):
        assert str(affine(number)) == str(number)
        for divisor in (1, 3, 7, high):
            assert (affine(number) // divisor).constant == number // divisor
            assert (affine(number) % divisor).constant == number % divisor
            assert (var("i") // divisor).evaluate({"i": number}) == number // divisor
            assert (var("i") % divisor).evaluate({"i": number}) == number % divisor
    # A quotient of a quotient whose divisors' product is no number of 64 bits stays two quotients.
    assert ((var("i") // high) // high).evaluate({"i": high}) == 0
    assert str(low * var("i")) == f"-{2**63}*i"


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**63 - 1))
def test_large_numbers_agree_with_python_or_are_refused(a: int, b: int, d: int) -> None:
    def same(made: Callable[[], int], expected: int) -> None:
        if -(2**63) <= expected < 2**63:
            assert made() == expected
        else:
            with pytest.raises(IGraphError):
                made()

    same(lambda: (affine(a) + b).constant, a + b)
    same(lambda: (affine(a) * b).constant, a * b)
    same(lambda: (a * var("i")).evaluate({"i": b}), a * b)
    assert (affine(a) // d).constant == a // d
    assert (affine(a) % d).constant == a % d


def test_numbers_near_zero_are_one_expression_each() -> None:
    assert affine(7) is affine(7)
    assert affine(-7) is affine(-7) is not affine(7)
    assert affine(1 << 40) == 1 << 40
