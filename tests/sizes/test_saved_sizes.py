# SPDX-License-Identifier: Apache-2.0
"""Open sizes and conditions as texts: they say what they said, and nothing else is read."""

from __future__ import annotations

import itertools
import json

import pytest
from uir_tvm.errors import FrontendError
from uir_tvm.sizes.open_arithmetic import least
from uir_tvm.sizes.open_symbols import OpenSymbol
from uir_tvm.sizes.saved_sizes import condition_text, from_texts, holds, in_texts, number, readable
from uir_tvm.sizes.size_space import SizeSpace

SIZES = [{"n": n, "m": m} for n, m in itertools.product((2, 3, 8, 53), (2, 7, 61))]


def space() -> SizeSpace:
    return SizeSpace([OpenSymbol("n", 2, None, 53), OpenSymbol("m", 2, 512, 61)])


def test_sizes_are_the_same_after_they_were_texts() -> None:
    made = space()
    n, m = made.symbol("n"), made.symbol("m")
    sizes = [n, n * m - 3 * m, n // 4, (n * m) % 5 + n // m, -n + 64 * m, least(n, 2 * m), (n // 4) * (n % 4)]
    data = {"shape": sizes, "plain": 3, "text": "n", "none": None}
    back = from_texts(json.loads(json.dumps(in_texts(data))))
    assert (back["plain"], back["text"], back["none"]) == (3, "n", None)
    assert in_texts(back) == in_texts(data)
    for numbers in SIZES:
        assert [number(size, numbers) for size in back["shape"]] == [number(size, numbers) for size in sizes]


def test_conditions_are_the_same_as_texts() -> None:
    made = space()
    n, m = made.symbol("n"), made.symbol("m")
    assert n != m and n < m and n % 4 != 0 and n // 4 < m * m and not n == 3 * m
    assert len(made.conditions) >= 3
    for condition in made.conditions:
        text = condition_text(condition)
        assert readable(text, ("n", "m"))
        assert [holds(text, numbers) for numbers in SIZES] == [condition.holds(numbers) for numbers in SIZES]


@pytest.mark.parametrize(
    "text, true",
    [
        ("2 <= n <= 512 and not n == m", True),
        ("Eq(Mod(n, 4), 0) | Ne(m, 7)", False),
        ("(n > m) & (m >= 2)", True),
        ("Or(n < 3, Not(m == 3))", True),
        ("~(n == 9)", False),
        ("True", True),
    ],
)
def test_what_pytorch_and_sympy_write(text: str, true: bool) -> None:
    assert readable(text, ("n", "m")) and holds(text, {"n": 9, "m": 7}) is true


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "n.real == 2",
        "n",
        "n + 1",
        "(lambda: n)() == 2",
        "k > 2",
        "n >",
        "n is 2",
        "2.5 < n",
    ],
)
def test_nothing_else_is_read(text: str) -> None:
    assert not readable(text, ("n", "m"))
    with pytest.raises(FrontendError):
        holds(text, {"n": 2, "m": 2})
