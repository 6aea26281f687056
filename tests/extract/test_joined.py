# SPDX-License-Identifier: Apache-2.0
"""Parallel loops one after the other are phases of one graph, with barriers where data crosses units."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx
from tvm.script import tirx as T
from uir_tvm.errors import ExtractionError
from uir_tvm.extract.joined import joined
from uir_tvm.igraph import HardwareModel, interpreter

from tests.extracted import extracted

HW = HardwareModel("grid", "cpu", 4, 1, 1 << 16, 0, 32, {})


@T.prim_func(s_tir=True)
def mirrored(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    """The second phase reads the result of the first, made by another unit."""
    for p in T.serial(4, annotations={"uir.parallel": "4,1"}):
        for i in range(8):
            with T.sblock("double"):
                v = T.axis.spatial(32, p * 8 + i)
                B[v] = A[v] + A[v]
    for q in T.serial(4, annotations={"uir.parallel": "4,1"}):
        for i in range(8):
            with T.sblock("mirror"):
                v = T.axis.spatial(32, q * 8 + i)
                C[v] = B[31 - v]


@T.prim_func(s_tir=True)
def two_numbers_of_units(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    S = T.sblock_alloc_buffer((32,), "float32")
    for p in T.serial(4, annotations={"uir.parallel": "4,1"}):
        for i in range(8):
            with T.sblock("double"):
                v = T.axis.spatial(32, p * 8 + i)
                S[v] = A[v] + A[v]
    for q in T.serial(2, annotations={"uir.parallel": "2,1"}):
        for i in range(16):
            with T.sblock("mirror"):
                v = T.axis.spatial(32, q * 16 + i)
                B[v] = S[31 - v]


def test_what_crosses_units_waits_for_all_of_them() -> None:
    """Though it is a result of the function: no unit reads it before it is there."""
    graph = extracted(mirrored, HW)
    syncs = [iop for iop, _ in graph.walk() if iop.op == "sync"]
    assert graph.num_parallel == 4 and [str(s.attrs["scope"]) for s in syncs] == ["dram"]
    x = np.arange(32, dtype="float32")
    twice, back = interpreter.run(graph, x)
    np.testing.assert_array_equal(np.ravel(twice), 2 * x)
    np.testing.assert_array_equal(np.ravel(back), 2 * x[::-1])


def test_loops_for_the_same_units_become_one() -> None:
    body = joined(mirrored).body.block.body
    assert isinstance(body, tirx.For) and len(body.body.seq) == 2


def test_loops_for_other_units_stay_and_are_refused() -> None:
    assert joined(two_numbers_of_units).same_as(two_numbers_of_units)
    with pytest.raises(ExtractionError, match="not the only outermost loop"):
        extracted(two_numbers_of_units, HW)
