# SPDX-License-Identifier: Apache-2.0
"""The factors of a product, and which of them walks the stored columns."""

from __future__ import annotations

import pytest
from tvm import tirx
from uir_tvm.extract.contract_blocks import _factors

A, B, C = (tirx.Var(name, dtype) for name, dtype in (("a", "float16"), ("b", "float16"), ("c", "bfloat16")))


def wide(x: tirx.Var) -> tirx.Cast:
    return tirx.Cast("float32", x)


@pytest.mark.parametrize("sides", [(A, C), (A, tirx.Var("x", "float32")), (tirx.Var("x", "float32"), A)])
def test_casts_of_unlike_factors_stay(sides: tuple[tirx.Var, tirx.Var]) -> None:
    """Only where both are widened from one dtype does the product widen them itself."""
    a, b = (wide(x) if str(x.ty) != "float32" else x for x in sides)
    assert _factors(tirx.Mul(a, b)) == (a, b)


def test_a_product_widens_factors_of_one_dtype() -> None:
    assert _factors(tirx.Mul(wide(A), wide(B))) == (A, B)
    assert _factors(A + B) is None
