# SPDX-License-Identifier: Apache-2.0
"""Sizes that follow from others: their names say how, and every reader of a name computes the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from uir_tvm.igraph.affine import var
from uir_tvm.igraph.size_names import follows, name_of, renamed, text_of, value_of
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import factored, launch_sizes, range_of, sizes_at

N, C = tirx.Var("n", "int64"), tirx.Var("c", "int64")
NAMED = {
    "n_over_2": N // 2,
    "n_plus_3": N + 3,
    "n_plus_3_minus_c": N + 3 - C,
    "n_minus_1_over_2_plus_1": (N - 1) // 2 + 1,
    "n_by_5_plus_c": N * 5 + C,
    "n_over_2_from_60": 60 - N // 2,
}


@pytest.mark.parametrize("name", NAMED)
def test_expressions_have_names_that_say_them(name: str) -> None:
    assert name_of(NAMED[name]) == name
    assert follows(name) and not follows("n")


def test_what_no_name_says_has_none() -> None:
    # from the left there is no step for either, and a name with a word of ours in it says another expression
    assert name_of(N % 2) is None and name_of(N + C * 2) is None
    assert name_of(tirx.Var("n_over_2", "int64") + 1) is None


@given(n=st.integers(0, 99), c=st.integers(0, 9))
def test_readers_of_a_name_agree(n: int, c: int) -> None:
    numbers = {"n": n, "c": c}
    wanted = [n // 2, n + 3, n + 3 - c, (n - 1) // 2 + 1, 5 * n + c, 60 - n // 2]
    assert list(sizes_at(NAMED, numbers).values()) == wanted
    assert [value_of(name, {"n": var("n"), "c": var("c")}).evaluate(numbers) for name in NAMED] == wanted
    assert [eval(text_of(name), {}, numbers) for name in NAMED] == wanted
    other = {"n": "batch", "c": "width"}
    told = [value_of(renamed(name, other), {other[k]: v for k, v in numbers.items()}) for name in NAMED]
    assert told == wanted


def test_products_of_what_follows() -> None:
    assert value_of("n_over_2_times_c", {"n": 9, "c": 5}) == 20
    assert text_of("n_over_2_times_c", {"n": "a + b", "c": "c"}.__getitem__) == "((a + b) // 2) * c"
    assert value_of("n_over_2", {"n": 9, "n_over_2": 7}) == 7  # a variable of that name


def test_ranges_follow_too() -> None:
    known = {"n": Size("n", 4, 24, 4), "c": Size("c", 1, 5)}
    half, left = range_of("n_over_2", known), range_of("n_minus_8_minus_c", known)
    assert (half.low, half.high, half.multiple_of) == (2, 12, 2)
    assert (left.low, left.high) == (0, 15)  # a dimension is never below zero
    with pytest.raises(KeyError, match="k"):
        range_of("k_over_2", known)


def test_a_launch_computes_them() -> None:
    params = [tirx.decl_buffer([N, 4], name="x"), tirx.decl_buffer([4, N // 2], name="y")]
    func = tirx.PrimFunc(params, tirx.Evaluate(0))
    assert str(launch_sizes(func, ["n_over_2"])["n_over_2"]) == str(N // 2)
    # of a function's own variables there is no more to know
    assert factored({"n": 9, "n_over_2": 4}, ["n"]) == {"n": 9}
