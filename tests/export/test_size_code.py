# SPDX-License-Identifier: Apache-2.0
"""Expressions of sizes as C++: what the text computes is what the expression is."""

from __future__ import annotations

import random
import re

import pytest
from uir_tvm.errors import ExportError
from uir_tvm.export.size_code import condition_code, size_code
from uir_tvm.sizes.saved_sizes import holds, size_text
from uir_tvm.sizes.symbolic_shapes import in_terms_of, value_of

NAMES = {"n": "n_1", "m": "m"}


def computed(text: str, sizes: dict[str, int]) -> int | bool:
    """What the C++ gives: its operators are Python's but for ``&& || !``, its functions those of sizes.h."""
    text = text.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text).replace("true", "True").replace("false", "False")
    known = {"Div": lambda a, b: a // b, "Mod": lambda a, b: a % b, "Min": min, "Max": max}
    return eval(text, {**known, **{NAMES[name]: size for name, size in sizes.items()}})  # type: ignore[no-any-return]


def expression(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(["n", "m", str(rng.randrange(1, 9))])
    left, right = (expression(rng, depth - 1) for _ in range(2))
    word = rng.choice(["+", "-", "*", "//", "%", "min", "neg"])
    if word == "min":
        return f"min({left}, {right})"
    if word == "neg":
        return f"-({left})"
    return f"({left}) {word} {rng.randrange(1, 7)}" if word in ("//", "%") else f"({left}) {word} ({right})"


def test_random_expressions_keep_their_value() -> None:
    """As text in C++, and with other sizes in the place of their symbols."""
    seed = 11
    rng = random.Random(seed)
    for _ in range(200):
        text, sizes = expression(rng, 3), {"n": rng.randrange(1, 40), "m": rng.randrange(1, 40)}
        wanted = value_of(text, sizes)
        assert computed(size_code(text, NAMES), sizes) == wanted, (seed, text, size_code(text, NAMES))
        turned = in_terms_of(text, {"n": "m - 2", "m": "n*3"})
        put = {"n": sizes["m"] - 2, "m": sizes["n"] * 3}
        back = turned if isinstance(turned, int) else value_of(turned, sizes)
        assert back == value_of(text, put), (seed, text, turned)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("b*n*32", "b * n * 32"),
        ("((n + 3) / 4)", "Div(n + 3, 4)"),
        ("div(n - 1, 2) + 1", "Div(n - 1, 2) + 1"),
        ("n - (b - 1)", "n - (b - 1)"),
        ("2*(n + b)", "2 * (n + b)"),
        ("min(n, b, 3)", "Min(Min(n, b), 3)"),
    ],
)
def test_how_it_reads(text: str, code: str) -> None:
    """With the parentheses that it needs, whoever printed it: Python, an open size, an affine expression."""
    assert size_code(text, {"n": "n", "b": "b"}) == code


@pytest.mark.parametrize(
    "text",
    [
        "1 <= n <= 20",
        "n % 4 == 0",
        "Eq(Mod(n, 3), 0)",
        "(n > 2) & (m > 2) | (n == m)",
        "Or(Ne(n, m), Lt(n, 5))",
        "not (n < m)",
        "True",
        "(n == n) & (m <= m) & Not(Ne(n, n))",
        "n < n",
    ],
)
def test_conditions_hold_where_they_hold(text: str) -> None:
    code = condition_code(text, NAMES)
    for n in range(0, 24, 3):
        for m in (1, 6, 12):
            sizes = {"n": n, "m": m}
            assert computed(code, sizes) == holds(text, sizes), (text, code, sizes)


@pytest.mark.parametrize("text", ["n ** 2", "sqrt(n)", "k + 1", "n < 3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ExportError, match="nothing that a project") as error:
        size_code(text, NAMES)
    assert "--size" in error.value.remedy
    with pytest.raises(ExportError):
        condition_code("n + 1", NAMES)


def test_affine_texts_are_read() -> None:
    """Those of an iGraph: ``/`` rounds down."""
    assert value_of(str(in_terms_of("((n + 3) / 4)", {"n": "b*s"})), {"b": 3, "s": 5}) == 4
    assert size_text("div(n, 2)") == "FloorDiv(n, 2)"
