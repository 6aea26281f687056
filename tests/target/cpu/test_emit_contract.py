# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of an iGraph's text is one iOp)
"""The contract iOp as emitted equals the interpreter: every size of block, layout, valid range and dtype."""

from __future__ import annotations

import pytest

from tests.igraph.strategies import random_inputs

from .support import check, parsed

#: Products of length k accumulate in fp32 here and in fp64 there.
RTOL, ATOL = 1e-5, 1e-5


def _graph(m: int, n: int, k: int, b_stride: str, dtype: str = "fp32", box: str = "", attrs: str = "") -> str:
    role = "inout" if "accumulate" in attrs else "out"
    result = {"int8": "int32"}.get(dtype, dtype)
    return parsed(
        f"a = iPointer(dram, {dtype}, {m * k}, in)\nb = iPointer(dram, {dtype}, {k * n}, in)\n"
        f"t = iPointer(dram, {result}, {m * n}, {role})",
        f"contract.{result} t[0; ({m},{n}); ({n},1)], a[0; ({m},{k}); ({k},1){box}], b[0; ({k},{n}); {b_stride}] {attrs}",
    )


@pytest.mark.parametrize(
    "shape", [(4, 16, 8), (9, 37, 21), (1, 5, 3), (6, 64, 1), (5, 1, 7), (3, 21, 32), (7, 9, 16)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_shapes_and_layouts(shape: tuple[int, int, int], transposed: bool) -> None:
    m, n, k = shape
    graph = _graph(m, n, k, f"(1,{k})" if transposed else f"({n},1)")
    check(graph, random_inputs(graph), RTOL, ATOL)


@pytest.mark.parametrize(("dtype", "rtol"), [("fp16", 2e-3), ("bf16", 1.6e-2), ("int8", 0), ("int32", 0)])
def test_dtypes(dtype: str, rtol: float) -> None:
    graph = _graph(7, 19, 12, "(19,1)", dtype)
    check(graph, random_inputs(graph), rtol, rtol)


def test_accumulates() -> None:
    graph = _graph(5, 24, 6, "(24,1)", attrs="[accumulate=true]")
    check(graph, random_inputs(graph), RTOL, ATOL)


def test_sums_over_the_valid_columns() -> None:
    graph = _graph(5, 24, 16, "(24,1)", box="; cols 2:11")
    check(graph, random_inputs(graph), RTOL, ATOL)


def test_tile_of_a_loop_over_k() -> None:
    """A ragged last tile in every dimension, accumulated over a loop in reg memory, with an epilogue."""
    graph = parsed(
        "a = iPointer(dram, fp32, 420, in)\nb = iPointer(dram, fp32, 714, in)\nt = iPointer(dram, fp32, 680, out)\n"
        "c = iPointer(reg, fp32, 256)",
        """fill.fp32 c[0; (8,32); (32,1)] [0]
        for k in 3 {
          contract.fp32 c[0; (8,32); (32,1); rows :20 - 8*(pid / 2); cols :34 - 32*(pid % 2)], a[168*(pid / 2) + 8*k; (8,8); (21,1); rows :20 - 8*(pid / 2); cols :21 - 8*k], b[32*(pid % 2) + 272*k; (8,32); (34,1); rows :21 - 8*k; cols :34 - 32*(pid % 2)] [accumulate=true]
        }
        unary.relu.fp32 t[272*(pid / 2) + 32*(pid % 2); (8,32); (34,1); rows :20 - 8*(pid / 2); cols :34 - 32*(pid % 2)], c[0; (8,32); (32,1); rows :20 - 8*(pid / 2); cols :34 - 32*(pid % 2)]""",
        6,
    )
    check(graph, random_inputs(graph), RTOL, ATOL)
