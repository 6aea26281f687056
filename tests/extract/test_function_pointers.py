# SPDX-License-Identifier: Apache-2.0
"""What pointers buffers become: the part of a dimension that a staged buffer keeps, and no empty ones."""

from __future__ import annotations

import pytest
from tvm.script import tirx as T
from uir_tvm.errors import ExtractionError
from uir_tvm.extract import extract
from uir_tvm.extract.function_pointers import _join
from uir_tvm.igraph.affine import Affine, affine, var

from .compare import HARDWARE

Span = tuple[Affine, int, int]
PID = var("pid")


@pytest.mark.parametrize(
    ("spans", "kept"),
    [
        ([(PID * 4, 0, 1), (PID * 4, 2, 3)], (PID * 4, 4)),
        ([(PID * 4, -1, 1)], (PID * 4 - 1, 3)),
        # one access that is not affine may be anywhere
        ([(PID * 4, 0, 1), None], (affine(0), 16)),
        ([None], (affine(0), 16)),
        ([(PID * 4, 0, 1), (PID * 2, 0, 1)], (affine(0), 16)),
        # no further than the dimension
        ([(affine(3), -5, 20)], (affine(0), 16)),
        ([(PID, 0, 16)], (affine(0), 16)),
        ([(PID, 0, 15)], (PID, 16)),
    ],
)
def test_the_hull_of_what_starts_alike(spans: list[Span | None], kept: tuple[Affine, int]) -> None:
    assert _join(spans, 16) == kept


def test_a_parameter_without_elements_is_refused_by_its_dimension() -> None:
    @T.prim_func(s_tir=True)
    def beside(A: T.Buffer((4,), "float32"), E: T.Buffer((4, 0), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                B[v] = A[v]

    with pytest.raises(ExtractionError, match="'E' has a dimension of size 0"):
        extract(beside, HARDWARE)
