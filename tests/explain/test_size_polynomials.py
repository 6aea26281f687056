# SPDX-License-Identifier: Apache-2.0
"""Sizes as polynomials: texts that say the same are one, sums and products are right."""

from __future__ import annotations

import pytest
from uir_tvm.explain.size_polynomials import polynomial, product, text_of, total
from uir_tvm.sizes.symbolic_shapes import value_of


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("128*b*n + 8448 - 4*b*n", "124*b*n + 8448"),
        ("n*(b + 1)", "b*n + n"),
        ("-(n - 3)", "-n + 3"),
        ("div(n + 3, 4)*4", "4*((n + 3) // 4)"),
        ("n % 4 + FloorDiv(n, 2)", "(n % 4) + (n // 2)"),
        ("min(n, b)", ""),
        ("n // b", ""),
    ],
)
def test_how_they_read(text: str, said: str) -> None:
    """Like terms are one; what is no polynomial with quotients by numbers is none."""
    found = text_of(polynomial(text))
    assert found == said
    if said and "div" not in text:
        assert value_of(found, {"b": 5, "n": 11}) == value_of(text, {"b": 5, "n": 11})


def test_sums_and_products() -> None:
    assert text_of(total(["4*b*n", 12, "b*n"])) == "5*b*n + 12" and text_of(total([])) == "0"
    assert text_of(product([2, "b", "n + 1", 3])) == "6*b + 6*b*n"
    assert total(["n", "n // b"]) is None and product(["n", "min(n, b)"]) is None
    assert product(["n // 2", "b // 2"]) is None, "two quotients multiply to nothing that adds up"
