# SPDX-License-Identifier: Apache-2.0
"""Which sizes the shapes of a function leave open, what is known of them, and what they are at a call."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te, tirx
from uir_tvm.errors import IGraphError
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import (
    LOWER,
    MOST,
    SIZES,
    UPPER,
    factored,
    launch_sizes,
    product_of,
    sizes_of,
    with_sizes,
)


def copy(*shape: Any) -> tirx.PrimFunc:
    """A function that copies a tensor."""
    x = te.placeholder(shape, "float32", "x")
    return te.create_prim_func([x, te.compute(shape, lambda *at: x[at], "y")])


def var(name: str) -> tirx.Var:
    return tirx.Var(name, "int64")


def ranges(func: tirx.PrimFunc) -> dict[str, tuple[int, int, int]]:
    return {s.name: (s.low, s.high, s.multiple_of) for s in sizes_of(func).values()}


def test_static_functions_have_none() -> None:
    assert sizes_of(copy(3, 4)) == {}


def test_ranges() -> None:
    func = copy(var("n"), 4, var("m"))
    assert ranges(func) == {"n": (0, MOST, 1), "m": (0, MOST, 1)}
    relax = func.with_attr(UPPER, {"n": 9}).with_attr(LOWER, {"n": 2})
    assert ranges(relax) == {"n": (2, 9, 1), "m": (0, MOST, 1)}
    known = with_sizes(relax, {"m": Size("m", 8, 64, 8)})
    assert ranges(known) == {"n": (2, 9, 1), "m": (8, 64, 8)}


@pytest.mark.parametrize("known", [[4, 3, 1], [5, 7, 8], [0, 3, 0], [-1, 3, 1]])
def test_ranges_without_a_value(known: list[int]) -> None:
    with pytest.raises(IGraphError, match="No value of the size n"):
        sizes_of(copy(var("n"), 4).with_attr(SIZES, {"n": known}))


@pytest.mark.parametrize("known", [["a"], [1, 2], [1, 2, 3, 4], "n"])
def test_ranges_that_are_none(known: object) -> None:
    with pytest.raises(IGraphError, match="What is known of the size n") as error:
        sizes_of(copy(var("n"), 4).with_attr(SIZES, {"n": known}))
    assert error.value.need


def test_two_variables_of_one_name() -> None:
    with pytest.raises(IGraphError, match="Two variables"):
        sizes_of(copy(var("n"), var("n")))


def test_a_variable_that_no_call_tells() -> None:
    with pytest.raises(IGraphError, match="no dimension of its own"):
        sizes_of(copy(var("n") * 2))


def test_products() -> None:
    product = product_of(Size("n", 2, 10, 2), Size("m", 3, 9, 3))
    assert (product.name, product.low, product.high, product.multiple_of) == ("n_times_m", 6, 90, 6)
    assert product_of(Size("n", 0, MOST), Size("m", 0, MOST)).high == MOST


def test_values_at_a_call() -> None:
    n, m = var("n"), var("m")
    found = launch_sizes(copy(n, m, 4), ["m", "n_times_m"])
    assert found["m"].same_as(m)
    tvm.ir.assert_structural_equal(found["n_times_m"], n * m)
    with pytest.raises(IGraphError, match="No parameter has the size k"):
        launch_sizes(copy(n, m), ["n_times_k"])


def test_factors_of_products() -> None:
    assert factored({"k": 7, "n_times_m": 15}, ["k", "n", "m"]) == {"k": 7, "m": 3, "n": 5}
    assert factored({"n_times_m_times_k": 8}, []) == {"m": 2, "k": 2, "n": 2}
    assert factored({"n_times_m": 11}, ["n"]) == {"n": 11, "m": 1}
    assert factored({"n_times_m": 0}, []) == {"n": 0, "m": 2}
    assert factored({"n_times_m": 15}, ["n_times_m"]) == {"n_times_m": 15}
