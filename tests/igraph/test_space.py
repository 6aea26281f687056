# SPDX-License-Identifier: Apache-2.0
"""What a space says of expressions, against all values that it admits."""

from __future__ import annotations

import math
from itertools import product

import islpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.errors import IGraphError
from uir_tvm.igraph import Affine, affine, var
from uir_tvm.igraph.space import Size, Space

from .strategies import affines

SIZES = {
    "pid": 5,
    "i": Size("i", 3, 20, 4),
    "j.outer": Size("j.outer", -6, 6, 3),
}
SPACE = Space(SIZES)
POINTS = [
    dict(zip(SIZES, values, strict=True)) for values in product(range(5), (4, 8, 12, 16, 20), range(-6, 7, 3))
]


def _values(e: Affine) -> list[int]:
    return [e.evaluate(env) for env in POINTS]


@settings(max_examples=200, deadline=None)
@given(affines())
def test_ranges_classes_and_magnitudes_hold_everywhere(e: Affine) -> None:
    found = _values(e)
    low, high = SPACE.range(e)
    assert low <= min(found) and max(found) <= high
    assert max(map(abs, found)) <= SPACE.magnitude(e)
    modulus, remainder = SPACE.congruence(e)
    if modulus:
        assert all(x % modulus == remainder for x in found)
        assert 0 <= remainder < modulus
    else:
        assert set(found) == {remainder}
    assert SPACE.is_multiple(e, 4) <= all(x % 4 == 0 for x in found)


@settings(max_examples=200, deadline=None)
@given(affines(), st.integers(1, 24))
def test_simpler_forms_have_the_same_values(e: Affine, k: int) -> None:
    found = _values(e)
    assert _values(SPACE.floordiv(e, k)) == [x // k for x in found]
    assert _values(SPACE.mod(e, k)) == [x % k for x in found]
    assert _values(SPACE.fold(e)) == found
    assert _values(SPACE.fold(k * (e // k) + e % k)) == found


@settings(max_examples=100, deadline=None)
@given(affines(), affines())
def test_decisions_hold_everywhere(a: Affine, b: Affine) -> None:
    x, y = _values(a), _values(b)
    known = SPACE.at_most(a, b)
    if known is not None:
        assert all((p <= q) is known for p, q in zip(x, y, strict=True))
    for chosen, of in ((SPACE.least(a, b), min), (SPACE.greatest(a, b), max)):
        assert chosen is None or _values(chosen) == list(map(of, x, y))


@settings(max_examples=100, deadline=None)
@given(affines())
def test_values_of_arrays_and_text_of_isl(e: Affine) -> None:
    arrays = {v: np.array([env[v] for env in POINTS]) for v in SIZES}
    assert np.broadcast_to(e.values(arrays), len(POINTS)).tolist() == _values(e)
    sparse = {
        v: np.reshape(np.unique(a), [-1 if k == at else 1 for k in range(3)])
        for at, (v, a) in enumerate(arrays.items())
    }
    assert np.broadcast_to(e.values(sparse), (5, 5, 5)).reshape(-1).tolist() == _values(e)
    names = {"pid": "p", "i": "q", "j.outer": "r"}
    at = islpy.PwAff(f"{{ [p, q, r] -> [({e.render(names, 'isl')})] }}")
    for env in POINTS[::31]:
        point = islpy.Set(f"{{ [{env['pid']}, {env['i']}, {env['j.outer']}] }}").sample_point()
        assert at.eval(point).to_python() == e.evaluate(env)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 2**33) | st.integers(2**32 - 3, 2**32 + 3) | st.integers(-9, 9), min_size=1),
    st.integers(2, 2**33) | st.sampled_from([2, 3, 64, 2**32 - 1, 2**32]),
)
def test_divisions_of_arrays_are_exact_around_32_bits(numbers: list[int], k: int) -> None:
    i = {"i": np.array(numbers)}
    assert (var("i") // k).values(i).tolist() == [x // k for x in numbers]
    assert (var("i") % k).values(i).tolist() == [x % k for x in numbers]


@given(affines(), st.integers(1, 12))
def test_growth_is_the_same_everywhere(e: Affine, step: int) -> None:
    grows = e.growth("pid", step)
    found = {e.evaluate({**env, "pid": env["pid"] + step}) - e.evaluate(env) for env in POINTS}
    assert grows is None or found == {grows}


def test_ranges_are_tight_where_usual_offsets_need_it() -> None:
    """Remainders of multiples, remainders within one period, and quotients."""
    pid = var("pid")
    assert Space({"pid": 99}).range((pid * 4) % 16) == (0, 12)
    assert Space({"pid": 4}).range((pid + 1) % 8) == (1, 4)
    assert Space({"pid": 10}).range(pid // 4) == (0, 2)
    assert Space({}).range(affine(7)) == (7, 7)


def test_sizes_have_ranges_and_divisors() -> None:
    n = Size("n", 1, 4096, 8)
    space = Space({"n": n, "pid": 64})
    tiles = (n.expr + 63) // 64
    assert space.range(n.expr) == (8, 4096)
    assert space.range(3 * n.expr // 64) == (0, 192)
    assert space.range(tiles) == (1, 64)
    assert space.is_multiple(n.expr * 3 + 16, 8) and not space.is_multiple(n.expr + 4, 8)
    assert space.is_multiple((n.expr * 24) // 3, 64)
    assert space.range((n.expr + 3) % 8) == (3, 3)
    assert space.range(n.expr % 64) == (0, 56)
    assert space.least(n.expr, 4096) == n.expr
    assert space.greatest(n.expr, 8) == n.expr
    assert space.least(n.expr, 64) is None
    assert space.evaluate(tiles, {"n": 72}) == 2


def test_what_divides_a_size_leaves_quotients() -> None:
    """A number of tiles is known to be even without rounding."""
    n = Size("n", 64, 4096, 64)
    space = Space({"n": n})
    assert space.floordiv(n.expr + 63, 64) == n.expr // 64
    assert space.mod(n.expr + 5, 64) == 5
    assert space.mod(n.expr, 64) == 0


@pytest.mark.parametrize("value", [0, 12, 4104])
def test_a_size_refuses_what_it_does_not_admit(value: int) -> None:
    n = Size("n", 1, 4096, 8)
    with pytest.raises(IGraphError, match="from 1 to 4096 and a multiple of 8"):
        Space({"n": n}).evaluate(n.expr, {"n": value})


def test_what_leaves_64_bits_is_refused_wherever_it_is_asked() -> None:
    big = 2**40 * var("i")
    space = Space({"i": 2**40})
    with pytest.raises(IGraphError, match="64 bits"):
        space.range(big)
    assert space.magnitude(big) == 2**63 - 1
    with pytest.raises(IGraphError, match="64 bits"):
        big.values({"i": np.array([1, 2**30])})
    assert big.values({"i": np.array([1, 2**20])}).tolist() == [2**40, 2**60]
    # the sum fits although a bound of its parts does not
    close = 2**40 * var("i") - 2**40 * var("j")
    assert close.values({"i": np.array([2**22, 5]), "j": np.array([2**22, 5])}).tolist() == [0, 0]


def test_variables_that_are_not_known_are_named() -> None:
    with pytest.raises(ValueError, match="of the variable k"):
        Space({"i": 4}).range(var("k"))
    with pytest.raises(ValueError, match="no name for the variable i"):
        var("i").render({}, "isl")


@given(affines(), affines())
def test_divisors_of_linear_sums_are_the_greatest(a: Affine, b: Affine) -> None:
    linear = sum((t.expr for t in (*a.terms, *b.terms) if t.kind == "var"), start=affine(int(a.constant)))
    extents = {"pid": 5, "i": 3, "j.outer": 2}
    values = [
        linear.evaluate(dict(zip(extents, x, strict=True)))
        for x in product(*(range(n) for n in extents.values()))
    ]
    assert math.gcd(*Space(extents).congruence(linear)) == math.gcd(*values)


def test_what_only_reaches_a_bound_is_at_most_it() -> None:
    space = Space({"i": 8})
    assert space.at_most(var("i"), 7) is True and space.at_most(7, var("i")) is None
    assert space.at_most(8, var("i")) is False and space.at_most(var("i"), var("i")) is True
