# SPDX-License-Identifier: Apache-2.0
"""Conditions become conjunctions of affine bounds, or are refused."""

from __future__ import annotations

import pytest
import tvm
from tvm import tirx
from uir_tvm.extract.affine_from_tir import AffineConverter
from uir_tvm.extract.box import NotABoxError, conjunction
from uir_tvm.igraph.affine import var
from uir_tvm.igraph.space import Space

P, J = (tvm.ir.Var(name, "int32") for name in "pj")
CONVERTER = AffineConverter({P: var("p"), J: var("j")}, {}, Space({"p": 8, "j": 3}))


def test_a_hint_is_the_condition_that_it_hints_at() -> None:
    assert conjunction(tirx.likely(P < 5), CONVERTER) == conjunction(P < 5, CONVERTER) != []


@pytest.mark.parametrize(
    "condition",
    [
        tirx.isnan(tirx.Cast("float32", P)),
        tirx.if_then_else(P < 5, J < 2, J < 1),
        tirx.Or(P < 5, J < 2),
        tirx.EQ(P % 3, J * P),
    ],
    ids=["function", "choice", "disjunction", "not affine"],
)
def test_what_is_no_conjunction_is_refused(condition: object) -> None:
    with pytest.raises(NotABoxError):
        conjunction(condition, CONVERTER)
