# SPDX-License-Identifier: Apache-2.0
"""Open sizes compute as whole numbers do, and what they answer holds wherever their conditions do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tvm import relax, tirx
from uir_tvm.errors import OpenSizeError
from uir_tvm.sizes.open_arithmetic import (
    broadcast_shapes,
    common_divisor,
    divides,
    least,
    most,
    representative,
)
from uir_tvm.sizes.open_size import OpenSize, at
from uir_tvm.sizes.open_symbols import OpenSymbol, symbols_for
from uir_tvm.sizes.size_space import SizeSpace

OPERATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    least,
    most,
)
QUESTIONS: tuple[Callable[[Any, Any], bool], ...] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


def space() -> SizeSpace:
    return SizeSpace([OpenSymbol("n", 2, None, 61), OpenSymbol("m", 2, 64, 59)])


#: How to reach a size: leaves, and operations on two of what was reached so far.
steps = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 30), st.integers(0, 30)), max_size=8
)


def walked(leaves: list[Any], way: list[tuple[int, int, int]]) -> list[Any]:
    """What the operations make of leaves; one that divides by what may be 0 or less is left out."""
    found = list(leaves)
    for which, i, j in way:
        left, right = found[i % len(found)], found[j % len(found)]
        try:
            found.append(OPERATIONS[which](left, right))
        except ArithmeticError:
            found.append(left)
    return found


@given(steps, st.integers(2, 200), st.integers(2, 64))
@example(way=[(3, 0, 13), (3, 5, 29)], n=2, m=2)
@example(way=[(3, 1, 0), (4, 17, 0)], n=2, m=2)
def test_what_is_computed_is_what_numbers_give(way: list[tuple[int, int, int]], n: int, m: int) -> None:
    s = space()
    sizes = {"n": n, "m": m}
    for size in walked([s.symbol("n"), s.symbol("m"), 1, 3, 8], way):
        if isinstance(size, OpenSize):
            assert eval(str(size), {"div": operator.floordiv, "mod": operator.mod}, sizes) == at(size, sizes)
    # the same steps in numbers, but for those that were left out of open sizes
    open_, plain = [s.symbol("n"), s.symbol("m"), 1, 3, 8], [n, m, 1, 3, 8]
    for which, i, j in way:
        a, b = i % len(open_), j % len(open_)
        try:
            result = OPERATIONS[which](open_[a], open_[b])
        except ArithmeticError:
            continue
        try:
            number = OPERATIONS[which](plain[a], plain[b])
        except ZeroDivisionError:
            # a divisor that is 0 for these sizes alone
            assert not s.admits()(**sizes)
            return
        open_.append(result)
        plain.append(number)
        assert at(open_[-1], sizes) == plain[-1]


@given(steps, st.integers(0, len(QUESTIONS) - 1), st.integers(2, 200), st.integers(2, 64))
def test_answers_hold_where_conditions_do(
    way: list[tuple[int, int, int]], question: int, n: int, m: int
) -> None:
    s = space()
    reached = walked([s.symbol("n"), s.symbol("m"), 1, 3, 8], way)
    answers = [(a, b, QUESTIONS[question](a, b)) for a, b in zip(reached, reversed(reached), strict=True)]
    assert s.admits()(**s.representatives)
    sizes = {"n": n, "m": m}
    if s.admits()(**sizes):
        for a, b, answer in answers:
            assert QUESTIONS[question](at(a, sizes), at(b, sizes)) is answer, (str(a), str(b))


def test_ranges_decide_without_conditions() -> None:
    s = space()
    n, m = s.symbol("n"), s.symbol("m")
    assert n > 1 and n != 0 and n * m > n and n * m - n >= 2 and m < 65 and m != n * 64 + 1
    assert 4 * n % 4 == 0 and 4 * n // 4 == n and (4 * n + 6) % 4 == 2 and 32 * n * m // (8 * m) == 4 * n
    assert n % (n * m) == n and 2 * n + 1 != 4 * m
    assert not s.conditions


def test_what_ranges_leave_open_becomes_a_condition() -> None:
    s = space()
    n, m = s.symbol("n"), s.symbol("m")
    assert n != m and n > 40 and n % 4 != 0 and not n * m < 100
    assert list(map(str, s.conditions)) == ["n != m", "n >= 41", "mod(n, 4) != 0", "m*n >= 100"]
    admits = s.admits()
    assert admits(n=61, m=3) and not admits(n=64, m=3) and not admits(n=40, m=3) and not admits(n=61, m=65)


def test_polynomials_divide_polynomials() -> None:
    s = space()
    n, m = s.symbol("n"), s.symbol("m")
    whole = (n * m + 3 * n + 1) * (2 * m + n)
    assert divmod(whole, 2 * m + n) == (n * m + 3 * n + 1, 0) and -whole // (2 * m + n) == -(
        n * m + 3 * n + 1
    )
    assert not s.conditions
    up = -(-(n + 1) // m)
    for sizes in ({"n": 7, "m": 3}, {"n": 8, "m": 3}, {"n": 9, "m": 3}):
        assert at(up, sizes) == -(-(sizes["n"] + 1) // sizes["m"])
        assert at(-(n + 1) % m, sizes) == -(sizes["n"] + 1) % sizes["m"]


def test_comparisons_narrow_ranges() -> None:
    s = space()
    n = s.symbol("n")
    assert n >= 10 and n <= 100
    assert n > 5 and n < 101 and least(n, 200) == n
    assert list(map(str, s.conditions)) == ["n >= 10", "100 >= n"]


def test_what_stands_for_all_compares_as_the_sizes_that_are_met() -> None:
    symbols = [OpenSymbol("n", 2, None, 61), OpenSymbol("m", 2, 64, 59)]
    s = SizeSpace(symbols, {"n": 7, "m": 59})
    assert s.symbol("m") >= 8 and s.symbol("n") != 7
    with pytest.raises(OpenSizeError, match="unlike n = 7"):
        _ = s.symbol("n") <= 48
    assert s.unlike is not None and str(s.unlike) == "48 >= n"
    ranges, names = {"n": (0, None), "m": (0, 64)}, {"n": "n", "m": "m"}
    others = symbols_for(ranges, names, {"n": 7, "m": 59}, s.unlike.holds)
    assert [each.representative for each in others] == [47, 53]
    assert symbols_for(ranges, names, {"n": 7, "m": 59}, lambda sizes: sizes["n"] == 7)[0].representative == 7


def test_sizes_that_must_agree_become_one() -> None:
    """Where the sizes at hand are equal and their symbols are not, the model is read with one symbol."""
    ranges, names = {"n": (0, None), "m": (0, 64)}, {"n": "n", "m": "m"}
    met = {"n": 8, "m": 8}
    apart = SizeSpace(symbols_for(ranges, names, met, lambda sizes: True), met)
    with pytest.raises(OpenSizeError, match="one size for both"):
        broadcast_shapes((apart.symbol("n"), 4), (apart.symbol("m"), 4))
    assert apart.unlike is not None and apart.unlike.holds(met) and apart.unlike.relation == "=="
    s = SizeSpace(symbols_for(ranges, names, met, apart.unlike.holds, 1, {"m": "n"}), met)
    assert s.symbol("m").terms == s.symbol("n").terms
    assert broadcast_shapes((s.symbol("n"), 4), (s.symbol("m"), 4)) == (s.symbol("n"), 4)
    assert s.representatives["n"] == s.representatives["m"] not in met.values()
    assert list(map(str, s.conditions)) == ["n == m"]
    assert s.admits()(n=9, m=9) and not s.admits()(n=9, m=8) and not s.admits()(n=65, m=65)


def test_open_sizes_are_no_numbers() -> None:
    n = space().symbol("n")
    for read in (int, range, hex, operator.index):
        with pytest.raises(TypeError):
            read(n)
    with pytest.raises(ArithmeticError):
        _ = 7 % (n - 61)


def test_shared_factors_and_shapes() -> None:
    s = space()
    n, m = s.symbol("n"), s.symbol("m")
    assert str(common_divisor(32 * n * m, 8 * n)) == "8*n" and common_divisor(n, m) == 1
    assert common_divisor(0, n) is n and common_divisor(12, 18) == 6 and common_divisor(4 * n, 6) == 2
    assert broadcast_shapes((n, 1, m), (4, 1)) == (n, 4, m)
    with pytest.raises(ValueError, match="broadcast"):
        broadcast_shapes((n,), (m,))
    assert divides(4, 8 * n) and not divides(4, n) and divides(4, 8) and representative(2 * n) == 122
    assert [str(each) for each in s.conditions] == ["n != m"]


def test_expressions_of_tvm() -> None:
    s = space()
    variable = tirx.Var("n", "int64")
    n = s.meet("n", variable)
    assert n is not None and s.meet("k", variable) is None
    first, second, third = relax.ShapeExpr([n, 4 * n + 1, (n + 1) // 2]).values
    assert first.same_as(variable) and [str(second), str(third)] == [
        "T.int64(1) + T.int64(4) * n",
        "(T.int64(1) + n) // T.int64(2)",
    ]


def test_representatives_are_primes_of_the_range() -> None:
    ranges = {"a": (0, None), "b": (1, None), "c": (0, 64), "d": (2, 3), "e": (8, 8), "f": (1000, None)}
    made = symbols_for(ranges, {name: name for name in ranges})
    assert [(each.low, each.representative) for each in made] == [
        (2, 53),
        (2, 59),
        (2, 61),
        (2, 3),
        (8, 8),
        (1000, 1009),
    ]
    assert symbols_for({"a": (0, None)}, {"a": "s1"}, {"a": 4}) == [OpenSymbol("a", 2, None, 4, "s1")]


def test_multiples_of_a_number_are_that_number_times_a_whole() -> None:
    """So that they divide by it for all sizes; which sizes they are is a condition."""
    (symbol,) = symbols_for(
        {"n": (2, 400)}, {"n": "n"}, {"n": 24}, lambda sizes: sizes["n"] % 12 == 0, least=1
    )
    assert symbol.multiple == 12 and symbol.representative % 12 == 0
    space = SizeSpace([symbol])
    n = space.symbol("n")
    assert n % 4 == 0 and n // 12 * 12 == n and (n // 6) % 2 == 0 and n >= 12 and n <= 396
    assert list(map(str, space.conditions)) == ["mod(n, 12) == 0"]
    assert space.admits()(n=36) and not space.admits()(n=30)
    assert space.value(n // 4, {"n": 36}) == 9
