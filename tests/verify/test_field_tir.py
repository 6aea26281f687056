# SPDX-License-Identifier: Apache-2.0
"""TIR on residues: which functions of floats keep what is known of them."""

from __future__ import annotations

import pytest
from tvm import tirx
from uir_tvm.igraph.finite_functions import WHOLE_POWERS
from uir_tvm.verify.field_tir import _power


@pytest.mark.parametrize(
    ("exponent", "called"),
    [
        (3.0, ["power"]),
        (-2.0, ["power"]),
        (float(WHOLE_POWERS), ["power"]),
        (0.5, ["mix"]),
        (-0.5, ["inverse", "mix"]),
        (2.5, ["mix2"]),
        (WHOLE_POWERS + 1.0, ["mix2"]),
    ],
)
def test_whole_powers_are_products_and_roots_roots(exponent: float, called: list[str]) -> None:
    """Of other powers nothing is known but that they are functions of two numbers."""
    text = str(_power(tirx.Var("x", "int64"), tirx.FloatImm("float32", exponent)))
    assert [word for word in text.replace("(", '"').split('"') if word.startswith("uir_field_")] == [
        f"uir_field_{name}" for name in called
    ]
