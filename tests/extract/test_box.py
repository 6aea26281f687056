# SPDX-License-Identifier: Apache-2.0
"""Conditions become conjunctions of affine bounds, or are refused."""

from __future__ import annotations

import itertools

import pytest
import tvm
from tvm import tirx
from uir_tvm.extract.affine_from_tir import AffineConverter
from uir_tvm.extract.box import Atom, NotABoxError, box_of, conjunction
from uir_tvm.extract.refusals import NeedsSerialError
from uir_tvm.igraph.affine import var
from uir_tvm.igraph.space import Size, Space

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


def test_conditions_of_no_row_and_no_column_are_one_bound_between_them() -> None:
    """Three ends of loops beside those of rows and columns: a box has one side for each of four."""
    sizes = {name: Size(name, 0, 5) for name in "rcxyz"}
    space = Space({"row": 5, "col": 5, "i": 5, "j": 5, "k": 5, **sizes})
    ends = [var(size) - var(loop) for size, loop in zip("rcxyz", ["row", "col", "i", "j", "k"], strict=True)]
    atoms = [Atom(end) for end in ends]
    with pytest.raises(NeedsSerialError):
        box_of(atoms, (5, 5), ("row", "col"), space)
    box = box_of(atoms, (5, 5), ("row", "col"), space, jointly=True)
    assert (box.row_end, box.col_end, box.col_begin) == (var("r"), var("c"), None)
    assert box.row_begin is not None
    for point in itertools.product(range(3), repeat=6):
        env = dict(zip("xyzijk", point, strict=True))
        holds = env["i"] < env["x"] and env["j"] < env["y"] and env["k"] < env["z"]
        assert box.row_begin.evaluate(env) == 0 if holds else box.row_begin.evaluate(env) >= 5
