# SPDX-License-Identifier: Apache-2.0
"""Products of sizes: their algebra, and addresses that part into coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.errors import IGraphError
from uir_tvm.igraph import Affine, affine, var
from uir_tvm.igraph.bound import compile_affine
from uir_tvm.igraph.coordinates import address, coordinates_of, joined_dims, strides
from uir_tvm.igraph.space import Size, Space

from .strategies import affines

NAMES = ("pid", "i", "j.outer")
ENVS = st.fixed_dictionaries({name: st.integers(-50, 50) for name in (*NAMES, "s", "t")})
S, T = var("s"), var("t")


@given(affines(), st.sampled_from([S, T, S * T, S * S * 3 - T, 2 * S * T * S + 5]), ENVS)
def test_products_agree_with_integers(a: Affine, sizes: Affine, env: dict[str, int]) -> None:
    product = a * sizes
    assert product == sizes * a
    assert product.evaluate(env) == a.evaluate(env) * sizes.evaluate(env)
    assert compile_affine(product)(env) == product.evaluate(env)
    assert product.substitute({"s": 3, "t": T}).evaluate(env) == product.evaluate({**env, "s": 3})
    assert product - sizes * a == 0
    arrays = {name: np.array([value, 1, -2]) for name, value in env.items()}
    assert int(np.ravel(product.values(arrays))[0]) == product.evaluate(env)


@given(affines(), ENVS)
def test_what_a_space_says_of_products_holds(a: Affine, env: dict[str, int]) -> None:
    space = Space({**dict.fromkeys(NAMES, 7), "s": Size("s", 2, 10, 2), "t": Size("t", 1, 4)})
    env = {name: value % 7 for name, value in env.items()} | {
        "s": 2 + env["s"] % 5 * 2,
        "t": 1 + env["t"] % 4,
    }
    value = (a * S * T + S * S).evaluate(env)
    low, high = space.range(a * S * T + S * S)
    modulus, remainder = space.congruence(a * S * T + S * S)
    assert low <= value <= high and (value - remainder) % modulus == 0
    assert abs(value) <= space.magnitude(a * S * T + S * S)


def test_products_are_told_apart() -> None:
    e = 768 * S * (var("pid") // 12) + 64 * var("i")
    assert str(e) == "64*i + 768*s*(pid / 12)"
    assert not e.is_affine and not e.is_linear and (64 * var("i")).is_affine
    assert e.multiplied == {"s", "pid"}
    assert e.is_linear_in("i") and not e.is_linear_in("pid") and not e.is_linear_in("s")
    assert e.growth("i", 2) == 128 and e.growth("s", 1) is None
    with pytest.raises(IGraphError, match="two quotients"):
        _ = (var("pid") // 2) * (S // 3)
    with pytest.raises(IGraphError, match="64 bits"):
        (S * T).evaluate({"s": 1 << 40, "t": 1 << 40})
    with pytest.raises(IGraphError, match="not affine"):
        e.render({name: name for name in e.variables()}, "isl")
    assert Space({"s": Size("s", 0, 1 << 40), "t": Size("t", 0, 1 << 40)}).magnitude(S * T) == 2**63 - 1


@pytest.mark.parametrize(
    ("dims", "joined"),
    [
        ([S, 64], [S * 64]),
        ([1, S, 64], [S * 64]),
        ([T, 12, S, 64], [T * 12, S * 64]),
        ([T, 12, S, S], [T * 12, S, S]),
        ([T, 1, S], [T, S]),
        ([3, S], [3, S]),
        ([T + 1, 2 * S], [T + 1, 2 * S]),
    ],
)
def test_dimensions_are_joined_where_strides_are_numbers_times_each_other(dims, joined) -> None:
    assert joined_dims([affine(d) for d in dims]) == tuple(map(affine, joined))


def test_strides() -> None:
    assert strides((T, affine(12), S, S)) == (12 * S * S, S * S, S, 1)


@given(st.data())
def test_addresses_part_into_the_coordinates_that_they_are_made_of(data: st.DataObject) -> None:
    dims = data.draw(
        st.sampled_from([(T * 12, S * 64), (T, S), (T * 3, S, S), (affine(5), S), (T, 2 * S, T)])
    )
    space = Space({**dict.fromkeys(NAMES, 50), "s": Size("s", 1, 100), "t": Size("t", 1, 100)})
    whole = tuple(space.fold(data.draw(affines())) for _ in dims)
    found = coordinates_of(address(whole, dims), dims, space)
    assert found == whole


def test_addresses_that_do_not_part_are_not_known() -> None:
    space = Space({"pid": 9, "s": Size("s", 1, 9), "t": Size("t", 1, 9)})
    assert coordinates_of(T * var("pid"), (T, S), space) is None
    assert coordinates_of(S * var("pid"), (T, 2 * S), space) is None
    assert coordinates_of(var("pid") * (S + 1), (T, S + 1), space) is None
