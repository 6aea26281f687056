# SPDX-License-Identifier: Apache-2.0
"""Branches on data lose their condition: both sides are computed, and what is stored is chosen."""

from __future__ import annotations

import numpy as np
from tvm.script import tirx as T

from .compare import check

GIVEN = {"K": np.array([0, 1, 1, 0, 2, 0, 0, 1])}


def test_two_sides_that_store_the_same_element_are_one_store() -> None:
    @T.prim_func(s_tir=True)
    def func(K: T.Buffer((8,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("b"):
                v = T.axis.spatial(8, i)
                if K[v] > 0:
                    B[v] = A[v] + T.float32(1)
                else:
                    B[v] = A[v] * T.float32(3)

    graph, _ = check(func, given=GIVEN)
    stores = [iop for iop, _ in graph.walk() if iop.target.pointer.name == "B"]
    assert len(stores) == 1


def test_sides_that_store_different_elements_keep_what_is_not_chosen() -> None:
    @T.prim_func(s_tir=True)
    def func(K: T.Buffer((8,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("zero"):
                v = T.axis.spatial(16, i)
                B[v] = T.float32(0)
        for i in range(8):
            with T.sblock("b"):
                v = T.axis.spatial(8, i)
                if K[v] > 0:
                    B[v] = A[v] + T.float32(1)
                else:
                    B[v + 8] = A[v] * T.float32(3)

    check(func, given=GIVEN)
