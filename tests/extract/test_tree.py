# SPDX-License-Identifier: Apache-2.0
"""Loops within a block keep their order, and inits of several buffers happen where their updates begin."""

from __future__ import annotations

import numpy as np
from tvm.script import tirx as T

from .compare import check


def test_the_order_of_loops_within_a_block_is_kept() -> None:
    """Several iterations of both store to one element: the last one by the block's order wins."""

    @T.prim_func(s_tir=True)
    def overlapping(A: T.Buffer((8, 4), "float32"), B: T.Buffer((20,), "float32")):
        with T.sblock("all"):
            for j in range(8):
                for i in T.serial(4, annotations={"uir.loop": 1}):
                    B[4 * i + j] = A[j, i]

    check(overlapping)


def test_an_init_of_a_parameter_and_a_temporary_leaves_what_no_iteration_reaches() -> None:
    """From row 10 on the predicate never holds: the parameter keeps the caller's values there."""

    @T.prim_func(s_tir=True)
    def both(
        A: T.Buffer((16, 4), "float32"),
        B: T.Buffer((16,), "float32"),
        C: T.Buffer((10,), "float32"),
    ):
        t = T.sblock_alloc_buffer((16,))
        for i, k in T.grid(16, 4):
            with T.sblock("both"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(i + k < 10)
                with T.init():
                    t[vi] = T.float32(1)
                    B[vi] = T.float32(0)
                t[vi] = t[vi] * A[vi, vk]
                B[vi] = B[vi] + A[vi, vk]
        for i in range(10):
            with T.sblock("copy"):
                vi = T.axis.spatial(10, i)
                C[vi] = t[vi]

    given = {"B": np.arange(1, 17, dtype=np.float32)}
    _, (sums, _) = check(both, given=given)
    np.testing.assert_array_equal(sums.reshape(-1)[10:], given["B"][10:])
