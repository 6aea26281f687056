# SPDX-License-Identifier: Apache-2.0
"""What equations say of sizes that a model leaves open."""

from __future__ import annotations

from uir_tvm.sizes.open_symbols import symbols_for
from uir_tvm.sizes.size_condition import Condition, is_equation, settled
from uir_tvm.sizes.size_space import SizeSpace

RANGES = dict.fromkeys("abcd", (0, None))
SPACE = SizeSpace(symbols_for(RANGES, {name: name for name in RANGES}))
A, B, C, D = map(SPACE.symbol, "abcd")


def test_an_equation_is_of_two_symbols_or_of_one_and_a_number() -> None:
    assert is_equation(A - B, SPACE.symbols) and is_equation(A - 7, SPACE.symbols)
    assert is_equation(7 - A, SPACE.symbols)
    for other in (A + B, A + 7, A * 2 - B, A * B - 7, A - B - 7, A // 2 - 7):
        assert not is_equation(other, SPACE.symbols), str(other)


def test_symbols_that_are_others_or_numbers() -> None:
    """Whatever the order: a number of one is that of all that it equals."""
    equal = [Condition(A - B, "=="), Condition(C - B, "==")]
    assert settled(equal) == {"b": "a", "c": "a"}
    number = Condition(7 - C, "==")
    assert settled([*equal, number]) == {"a": 7, "b": 7, "c": 7}
    assert settled([number, *equal]) == {"a": 7, "b": 7, "c": 7}
    assert settled([Condition(D - 9, ">="), Condition(D - B, "!=")]) == {}


def test_a_symbol_that_is_a_number_stands_for_it() -> None:
    """It is one where shapes are read, and a condition; others get representatives unlike it."""
    found = symbols_for(
        RANGES,
        {name: name for name in RANGES},
        {**dict.fromkeys("abcd", 53)},
        lambda _: True,
        equal={"b": 53, "c": "a"},
    )
    space = SizeSpace(found)
    assert space.known("b") == 53 and space.known("c") is not None and str(space.known("c")) == "a"
    assert space.said("b + 1") == 54
    assert "b == 53" in map(str, space.conditions)
    assert space.representatives["b"] == 53 != space.representatives["a"] == space.representatives["c"]
    assert space.admits()(a=4, b=53, c=4, d=9) and not space.admits()(a=4, b=52, c=4, d=9)
